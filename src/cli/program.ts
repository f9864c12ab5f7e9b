/**
 * The commands of `raykeeper` and their options.
 *
 * May not: do the work. Each command's file is loaded only when it is called, so that `--help` is quick.
 */
import { Command, CommanderError, Option } from "commander";
import { configFlags } from "../config.ts";
import { VERSION } from "../shipped.ts";
import type { CrdsOptions } from "./crds.ts";
import type { ExplainOptions } from "./explain.ts";
import { describeFailure } from "./failure.ts";
import type { LocalOptions } from "./local.ts";
import type { MigrateOptions } from "./migrate.ts";
import type { OperatorOptions } from "./operator.ts";
import type { RunOptions } from "./run.ts";
import { type Ending, listenForEnd } from "./signals.ts";
import type { ValidateOptions } from "./validate.ts";
import { version } from "./version.ts";

/** Usage errors, and everything else that could not be run. */
const CANNOT_RUN = 2;

/** Runs the command the arguments name, and answers the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  let code = 0;
  let ending: Ending | undefined;
  // One end for the whole process, from the moment a command begins.
  const end = () => (ending ??= listenForEnd());
  const command = program((result) => {
    code = result;
  }, end);
  try {
    await command.parseAsync(args[0] === "operator" ? args.map(asGoReadsIt) : args, { from: "user" });
    return code;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : CANNOT_RUN;
    const signalled = ending?.code();
    if (signalled !== undefined) return signalled;
    process.stderr.write(`${describeFailure(error)}\n`);
    if (process.env["RAYKEEPER_DEBUG"] && error instanceof Error) process.stderr.write(`${error.stack}\n`);
    return CANNOT_RUN;
  }
}

/** The command tree; `done` gets the exit code of the command that ran. */
export function program(done: (code: number) => void, end: () => Ending): Command {
  const root = new Command("raykeeper")
    .description("Runs Ray jobs on Kubernetes: an operator for RayJob and RayCluster, and a command line to try it.")
    .version(VERSION, "-V, --version", "print the version number alone")
    .exitOverride()
    .showHelpAfterError("(add --help for help)")
    .showSuggestionAfterError()
    .helpCommand("help [command]", "show help for a command");

  root
    .command("run")
    .summary("apply a manifest with a RayJob, and follow the job to its end")
    .description(
      "Applies a RayJob and the RayCluster, ConfigMaps, Secrets and Services beside it, shows how it goes, and the job's own log as it " +
        "is written. The log goes to stdout, everything else to stderr.\n\n" +
        "Exit code: 0 the job succeeded, 1 it failed, 2 it could not be run, 130 watching was stopped by Ctrl-C.",
    )
    .argument("<file>", "a YAML file; - for stdin")
    .option("--local", "run it on an embedded cluster, made for the occasion and removed afterwards")
    .option("--follow", "a RayJob of this name exists already: watch it")
    .option("--replace", "a RayJob of this name exists already: delete it and run it anew")
    .option("-n, --namespace <name>", "namespace, instead of the context's")
    .option("--context <name>", "context of the kubeconfig, instead of the current one")
    .option("--kubeconfig <path>", "kubeconfig, instead of $KUBECONFIG or ~/.kube/config")
    .addOption(
      new Option("-o, --output <format>", "summary on stdout; the job's log then goes to stderr").choices(["json"]),
    )
    .option("--no-color", "plain text, also on a terminal (as does NO_COLOR)")
    .action(async (file: string, options: RunOptions) =>
      done(await (await import("./run.ts")).run(file, options, end())),
    );

  root
    .command("explain")
    .summary("tell what state a RayJob is in, why, what it waits for, and what you can do")
    .usage("[options] rayjob NAME | rayjob/NAME")
    .description(
      "One screen about a RayJob: its state, since when and why; what it waits for (a Pod, an image, a volume, a node, quota); " +
        "which timer runs out when; what became of earlier attempts; and what you can do, with the command. Only reads.\n\n" +
        "Exit code: 0 it is explained, whatever its state, 1 there is no such RayJob or it cannot be read, 2 wrong usage.",
    )
    .argument("<rayjob...>", "rayjob NAME, or rayjob/NAME")
    .option("-n, --namespace <name>", "namespace, instead of the context's")
    .option("--local", "on the embedded cluster of `raykeeper local up`")
    .option("--context <name>", "context of the kubeconfig, instead of the current one")
    .option("--kubeconfig <path>", "kubeconfig, instead of $KUBECONFIG or ~/.kube/config")
    .addOption(new Option("-o, --output <format>", "for programs").choices(["json"]))
    .option("--no-color", "plain text, also on a terminal (as does NO_COLOR)")
    .action(async (words: string[], options: ExplainOptions) =>
      done(await (await import("./explain.ts")).explainCommand(words, options)),
    );

  root
    .command("validate")
    .summary("tell what is wrong with the RayJobs and RayClusters of a file, without a cluster")
    .description(
      "Checks RayJobs and RayClusters as the API server, the webhook and the operator do: unknown fields, types, bounds, and " +
        "every rule about what goes with what. All mistakes are told at once, each with line, field and remedy; so is what is " +
        "allowed but surely not meant, as a warning. Objects of other kinds are passed over.\n\n" +
        "Exit code: 0 all are valid, 1 one is not, 2 a file cannot be read or has nothing to check.",
    )
    .argument("<file...>", "YAML or JSON files; - for stdin")
    .addOption(new Option("-o, --output <format>", "for programs").choices(["json"]))
    .action(async (files: string[], options: ValidateOptions) =>
      done(await (await import("./validate.ts")).validateCommand(files, options)),
    );

  const local = root
    .command("local")
    .summary("keep an embedded cluster running: up, down, status")
    .description(
      "An embedded cluster for trying things: Kubernetes' API in memory, the operator, and a node that runs Pods as processes " +
        "with a real Ray. kubectl works on it; it is no substitute for a real cluster.",
    );
  local
    .command("up")
    .summary('start it, and print how to reach it: eval "$(raykeeper local up)"')
    .description(
      "Starts the embedded cluster in the background. With --foreground it runs until this command is ended.",
    )
    .option("--foreground", "stay with it; Ctrl-C ends it")
    .addOption(clusterName())
    .action(async (options: LocalOptions & { foreground?: boolean }) =>
      done(await (await import("./local.ts")).up(options, end())),
    );
  local
    .command("down")
    .summary("stop it and everything that runs on it")
    .addOption(clusterName())
    .action(async (options: LocalOptions) => done(await (await import("./local.ts")).down(options)));
  local
    .command("status")
    .summary("tell whether it runs; exit code 1 when it does not")
    .addOption(clusterName())
    .action(async (options: LocalOptions) => done(await (await import("./local.ts")).status(options)));

  const operator = root
    .command("operator")
    .summary("run the operator, against the cluster of a kubeconfig or of its service account")
    .description(
      "Runs the operator until SIGTERM. Flags, configuration file and environment variables are KubeRay's. " +
        "Inside a cluster it uses its service account, outside of one a kubeconfig.",
    )
    .option("--kubeconfig <path>", "kubeconfig, instead of the service account, $KUBECONFIG or ~/.kube/config")
    .option("--context <name>", "context of the kubeconfig, instead of the current one")
    .option("--config <path>", "configuration file (config.ray.io/v1alpha1); most other flags then do not count");
  for (const flag of configFlags) operator.addOption(operatorOption(flag));
  operator.action(async (options: OperatorOptions) =>
    done(await (await import("./operator.ts")).operator(options, end())),
  );

  root
    .command("crds")
    .summary("print the CustomResourceDefinitions, or put them on a cluster")
    .description(
      "Prints the CustomResourceDefinitions of RayJob and RayCluster that this version needs, as YAML. With --apply it puts them " +
        "on the cluster by server-side apply, whoever made those that are there (KubeRay's, or an earlier version's), waits until " +
        "they are served, and prints what changed. Objects stay as they are.\n\n" +
        "Exit code: 0 done, also when nothing had to change, 2 it could not be done.",
    )
    .option("--apply", "put them on the cluster instead of printing them")
    .option("--kubeconfig <path>", "kubeconfig, instead of the service account, $KUBECONFIG or ~/.kube/config")
    .option("--context <name>", "context of the kubeconfig, instead of the current one")
    .action(async (options: CrdsOptions) => done(await (await import("./crds.ts")).crdsCommand(options, end())));

  const migrate = root
    .command("migrate")
    .summary("before Raykeeper takes over from KubeRay: check")
    .description("For a cluster on which KubeRay runs. docs/migrate.md tells how to take over, and how to go back.");
  migrate
    .command("check")
    .summary("tell what would become of each RayJob and RayCluster")
    .description(
      "Lists the RayJobs and RayClusters of a cluster, and what would become of each if Raykeeper took over now. Only reads.\n\n" +
        "Exit code: 0 nothing is in the way, 1 there is something to look at, 2 it could not be read.",
    )
    .option("-n, --namespace <name>", "one namespace, instead of all")
    .option("--context <name>", "context of the kubeconfig, instead of the current one")
    .option("--kubeconfig <path>", "kubeconfig, instead of $KUBECONFIG or ~/.kube/config")
    .addOption(new Option("-o, --output <format>", "for programs").choices(["json"]))
    .action(async (options: MigrateOptions) => done(await (await import("./migrate.ts")).migrateCheck(options)));

  root
    .command("version")
    .summary("print the version")
    .action(() => version());
  // Subcommands inherit neither of these by themselves.
  for (const command of [...root.commands, ...local.commands, ...migrate.commands]) {
    command.exitOverride().showHelpAfterError("(add --help for help)");
  }
  return root;
}

const OPERATOR_FLAGS = new Set(["kubeconfig", "context", "config", "help", ...configFlags.map(({ name }) => name)]);

/**
 * Go's flag package takes one dash for two, so manifests written for KubeRay may have it. A flag there is none of goes
 * without its value, because only then commander says which one was meant.
 */
function asGoReadsIt(argument: string): string {
  const [, name, value = ""] = /^--?([a-z][a-z-]+)(=.*)?$/s.exec(argument) ?? [];
  return name === undefined ? argument : `--${name}${OPERATOR_FLAGS.has(name) ? value : ""}`;
}

const clusterName = () => new Option("--name <name>", "which one, where several run side by side").default("default");

function operatorOption({ name, boolean, default: standard, what }: (typeof configFlags)[number]): Option {
  const shown = standard === "" || standard === undefined ? what : `${what} (default ${standard})`;
  // Go takes `--flag` and `--flag=false`; a boolean's value is optional here for the same reason.
  return new Option(`--${name} ${boolean ? "[true|false]" : "<value>"}`, shown.replaceAll("`", ""));
}
