import type { MetricRegistry } from "../../../ground/metrics/index.ts";

/** Told of every request when its handling begins; the result is called at its end. */
export type OnRequest = (method: string, path: string) => () => void;

const labelNames = ["method", "path", "server_type", "long_running"] as const;
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const methods: ReadonlySet<string> = new Set("OPTIONS GET HEAD POST PUT DELETE TRACE CONNECT".split(" "));
const paths: ReadonlySet<string> = new Set([
  "attach",
  "checkpoint",
  "configz",
  "containerLogs",
  "debug",
  "exec",
  "flagz",
  "healthz",
  "logs",
  "metrics",
  "pods",
  "portForward",
  "run",
  "runningpods",
  "stats",
  "statusz",
]);
const metricPaths: ReadonlySet<string> = new Set(["cadvisor", "probes", "resource", "slis"]);
// As upstream has it: port forwards and logs do not count.
const longRunning: ReadonlySet<string> = new Set(["attach", "debug", "exec"]);

/** Counts the requests of the node's API. What a stranger may make up ends as `other`, or it would fill the memory. */
export class HttpMetrics {
  readonly #total;
  readonly #durations;
  readonly #inFlight;

  constructor(registry: MetricRegistry) {
    const help = (what: string): string => `[ALPHA] ${what} to the API of the node`;
    this.#total = registry.counter("kubelet_http_requests_total", help("Requests"), labelNames);
    this.#durations = registry.histogram(
      "kubelet_http_requests_duration_seconds",
      help("How long requests took that were sent"),
      buckets,
      labelNames,
    );
    this.#inFlight = registry.gauge("kubelet_http_inflight_requests", help("Requests being answered"), labelNames);
  }

  /** For a server of this type, told of every request. */
  watch(serverType: "readonly" | "readwrite", monotonic: () => number): OnRequest {
    return (method, path) => {
      const name = pathLabel(path);
      const labels = {
        method: methods.has(method) ? method : "other",
        path: name,
        server_type: serverType,
        long_running: String(longRunning.has(name)),
      };
      const startedAt = monotonic();
      this.#total.inc(labels);
      this.#inFlight.add(labels, 1);
      return () => {
        this.#inFlight.add(labels, -1);
        this.#durations.observe(labels, (monotonic() - startedAt) / 1000);
      };
    };
  }
}

export function pathLabel(path: string): string {
  const [first = "", second = ""] = path.split("/").filter((part) => part !== "");
  if (first === "metrics" && metricPaths.has(second)) return `metrics/${second}`;
  return paths.has(first) ? first : "other";
}
