/**
 * What the operator refuses to start with: the chart refuses the same, before the operator that runs is replaced by one
 * that does not start.
 */
import { GATES } from "../../src/config/gates.ts";
import { OPTIONS } from "../../src/config/options.ts";
import { VARIABLES } from "../../src/config/variables.ts";

interface Refusal {
  /** The value that is refused. */
  readonly value: string;
  readonly why: string;
}

/** What a value must match, and what it then is. */
interface Kind {
  readonly pattern: string;
  readonly expected: string;
}

export interface Refusals {
  /** Every gate there is; `{}` where each value may be had. */
  readonly gates: Readonly<Record<string, Refusal | object>>;
  readonly variables: Readonly<Record<string, Refusal | Kind>>;
  /** Of the configuration file, whatever the value. */
  readonly fields: Readonly<Record<string, string>>;
}

export function refusals(): Refusals {
  const gates = Object.entries<{ on: boolean; refused?: string }>(GATES);
  const options = Object.values<{ field?: string; refused?: string }>(OPTIONS);
  return {
    gates: Object.fromEntries(
      gates.map(([name, { on, refused }]) => [name, refused ? { value: String(!on), why: refused } : {}]),
    ),
    variables: Object.fromEntries(
      Object.entries(VARIABLES).flatMap(([name, { read, only, refused }]) => {
        const refusal = refused ? { value: String(!only), why: refused } : read.told;
        return refusal ? [[name, refusal]] : [];
      }),
    ),
    fields: Object.fromEntries(options.flatMap(({ field, refused }) => (field && refused ? [[field, refused]] : []))),
  };
}
