/**
 * Numbers for Prometheus, in prom-client's registry.
 *
 * Two sources: what the machinery and the wiring count on their way (`OperatorMetrics`), and what RayJobs and RayClusters
 * show (rayMetrics.ts). All of the catalogue is registered from the start, so that a scrape shows what there is.
 * May not: decide anything.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { LabelsOf, Metric } from "../machinery/metrics.ts";
import { METRICS, type OperatorMetrics } from "./catalogue.ts";

type Labels = Readonly<Record<string, string>>;
/** Gives a gauge's series anew. */
type Reading = () => Iterable<readonly [Labels, number]>;

export class PrometheusMetrics implements OperatorMetrics {
  readonly registry = new Registry();
  readonly #constants: Labels;
  readonly #counters = new Map<string, Counter>();
  readonly #histograms = new Map<string, Histogram>();
  readonly #gauges = new Map<string, Gauge>();
  readonly #readings = new Map<string, Reading[]>();

  /** `constants`: the labels that have one value for the whole process (`host`). */
  constructor(constants: Labels = {}) {
    this.#constants = constants;
    collectDefaultMetrics({ register: this.registry });
    for (const [name, metric] of Object.entries<Metric>(METRICS)) this.#register(name, metric);
  }

  count(name: string, labels: Labels, by = 1): void {
    this.#counters.get(name)!.inc(this.#complete(name, labels), by);
  }

  observe(name: string, labels: Labels, value: number): void {
    this.#histograms.get(name)!.observe(this.#complete(name, labels), value);
  }

  gauge(name: string, labels: Labels, value: number): void {
    this.#gauges.get(name)!.set(this.#complete(name, labels), value);
  }

  computed(name: string, labels: Labels, read: () => number): void {
    this.#readings.get(name)!.push(() => [[this.#complete(name, labels), read()]]);
  }

  /** A gauge whose series are listed anew whenever somebody looks, so that what is gone leaves none behind. */
  listed<N extends keyof typeof METRICS>(name: N, rows: () => Iterable<Row<N>>): void {
    this.#readings.get(name)!.push(rows as Reading);
  }

  /** Takes one series away. */
  drop<N extends keyof typeof METRICS>(name: N, labels: LabelsOf<(typeof METRICS)[N]>): void {
    (this.#gauges.get(name) ?? this.#counters.get(name))?.remove(this.#complete(name, labels));
  }

  #complete(name: string, labels: Labels): Record<string, string> {
    const { constant } = METRICS[name as keyof typeof METRICS] as Metric;
    if (!constant) return { ...labels };
    return { ...labels, ...Object.fromEntries(constant.map((label) => [label, this.#constants[label] ?? ""])) };
  }

  #register(name: string, { type, labels, constant = [], help, buckets = [] }: Metric): void {
    const shared = { name, help, labelNames: [...labels, ...constant], registers: [this.registry] };
    switch (type) {
      case "counter":
        this.#counters.set(name, new Counter(shared));
        return;
      case "histogram":
        this.#histograms.set(name, new Histogram({ ...shared, buckets: [...buckets] }));
        return;
      case "gauge": {
        const readings: Reading[] = [];
        this.#readings.set(name, readings);
        const collect = function (this: Gauge) {
          if (readings.length > 0) this.reset();
          for (const reading of readings) for (const [labels, value] of reading()) this.set({ ...labels }, value);
        };
        this.#gauges.set(name, new Gauge({ ...shared, collect }));
      }
    }
  }
}

/** One series of a gauge. */
export type Row<N extends keyof typeof METRICS> = readonly [labels: LabelsOf<(typeof METRICS)[N]>, value: number];
