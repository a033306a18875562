import type { RuntimeCondition, RuntimeService, StatusResponse } from "../../connections/cri/index.ts";
import { type Clock, isAbort, type Logger, messageOf, Pause } from "../../ground/base/index.ts";

const readyIntervalMs = 60_000;
const troubledIntervalMs = 1_000;
const downAfterMs = 30_000;

/**
 * What the runtime says of itself and of the pod network. Asked rarely while all is well, every second while it is
 * not, so that pods that wait for it start at once.
 */
export class RuntimeStatus {
  readonly #ports: RuntimeStatusPorts;
  #network: string | undefined = "network state unknown";
  #runtime: string | undefined = "container runtime status check may not have completed yet";
  #answeredAt: number | undefined;
  #handlers: StatusResponse["runtimeHandlers"] = [];
  #features: StatusResponse["features"];
  readonly #pause: Pause;

  constructor(ports: RuntimeStatusPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** Why pods that need the pod network can't start; undefined when it is ready. */
  get networkProblem(): string | undefined {
    return this.#network;
  }

  /** Why no pod can start; undefined when the runtime is ready. */
  get runtimeProblem(): string | undefined {
    return this.#runtime;
  }

  get answeredAt(): number | undefined {
    return this.#answeredAt;
  }

  get handlers(): StatusResponse["runtimeHandlers"] {
    return this.#handlers;
  }

  get features(): StatusResponse["features"] {
    return this.#features;
  }

  /** Ask now instead of at the next interval. */
  hasten(): void {
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#ask(signal);
      const calm = this.#network === undefined && this.#runtime === undefined;
      await this.#pause.wait(calm ? readyIntervalMs : troubledIntervalMs, signal);
    }
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { runtime, clock, log } = this.#ports;
    const before = `${this.#runtime}\n${this.#network}`;
    try {
      const { status, runtimeHandlers, features } = await runtime.status(
        { verbose: false },
        { signal, timeoutMs: 10_000 },
      );
      const conditions = status?.conditions ?? [];
      this.#network = problemOf(conditions, "NetworkReady", "container runtime network not ready");
      this.#runtime = problemOf(conditions, "RuntimeReady", "container runtime not ready");
      this.#handlers = runtimeHandlers;
      this.#features = features;
      this.#answeredAt = clock.monotonic();
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.debug(2, "The runtime did not say how it is", { err: messageOf(error) });
      const silentMs = clock.monotonic() - (this.#answeredAt ?? 0);
      if (this.#answeredAt !== undefined && silentMs > downAfterMs) this.#runtime = "container runtime is down";
    }
    if (`${this.#runtime}\n${this.#network}` !== before) this.#ports.onChange();
  }
}

export interface RuntimeStatusPorts {
  readonly runtime: RuntimeService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onChange: () => void;
}

function problemOf(conditions: readonly RuntimeCondition[], type: string, prefix: string): string | undefined {
  const condition = conditions.find((candidate) => candidate.type === type);
  if (condition?.status === true) return undefined;
  return `${prefix}: ${type}=false reason:${condition?.reason ?? ""} message:${condition?.message ?? ""}`;
}
