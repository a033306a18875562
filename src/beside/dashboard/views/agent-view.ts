import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { readProcess } from "../../../connections/host/index.ts";
import { Rates } from "../live/rates.ts";
import { figureOf } from "../live/series.ts";
import type { DashboardPorts } from "../ports.ts";
import type { AgentView } from "../wire.ts";
import { callFigures } from "./call-figures.ts";

type AgentPorts = Pick<DashboardPorts, "clock" | "process">;

const minuteMs = 60_000;

/** How the agent itself does. What is a rate is taken between two looks. */
export class AgentLook {
  readonly #ports: AgentPorts;
  readonly #rates = new Rates();
  #requests: readonly { readonly at: number; readonly count: number }[] = [];
  #loop: EventLoopUtilization | undefined;

  constructor(ports: AgentPorts) {
    this.#ports = ports;
  }

  async view(): Promise<AgentView> {
    const { clock, process } = this.#ports;
    const at = clock.monotonic();
    const usage = readProcess("self");
    const loop = performance.eventLoopUtilization();
    const since = this.#loop === undefined ? undefined : performance.eventLoopUtilization(loop, this.#loop);
    this.#loop = loop;
    const text = await process.metrics();
    const apiCalls = callFigures(text, "rest_client_request_duration_seconds", "verb", {
      family: "rest_client_requests_total",
      label: "method",
      isFailure: (labels) => !/^[123]/.test(labels.get("code") ?? ""),
    });
    const requests = apiCalls.reduce((sum, { count }) => sum + count, 0);
    const perMinute = this.#perMinute(at, requests);
    const lag = await this.#lag();
    const counted = new Map<string, number>();
    for (const name of process.resources()) counted.set(name, (counted.get(name) ?? 0) + 1);
    return {
      pid: process.pid,
      ...process.memory(),
      cpu: figureOf(this.#rates.of("cpu", at, usage?.cpuSeconds)),
      loopBusy: since === undefined ? null : since.utilization,
      loopDelayMs: lag,
      openFiles: usage?.openFiles ?? 0,
      resources: Object.fromEntries([...counted].toSorted(([, a], [, b]) => b - a)),
      verbosity: process.verbosity(),
      runtimeCalls: callFigures(text, "kubelet_runtime_operations_duration_seconds", "operation_type", {
        family: "kubelet_runtime_operations_errors_total",
        label: "operation_type",
      }),
      apiCalls,
      apiRequestsPerMinute: figureOf(perMinute),
      watches: process.watches().map(({ name, heardAt, problem }) => ({
        name,
        heardAt: heardAt === undefined ? undefined : clock.now() - clock.monotonic() + heardAt,
        problem,
      })),
      log: process.logLines(),
    };
  }

  /** Over the last minute, or for as long as somebody has looked: a lease every ten seconds is seen in no second. */
  #perMinute(at: number, count: number): number | undefined {
    const kept = this.#requests.filter((seen) => at - seen.at <= minuteMs);
    this.#requests = [...kept, { at, count }];
    const [first] = kept;
    if (first === undefined || at === first.at) return undefined;
    return ((count - first.count) / (at - first.at)) * minuteMs;
  }

  /** How late a timer comes now. */
  async #lag(): Promise<number> {
    const { clock } = this.#ports;
    const begun = clock.monotonic();
    const waitMs = 10;
    await new Promise<void>((resolve) => void clock.after(waitMs, resolve));
    return Math.max(0, clock.monotonic() - begun - waitMs);
  }
}
