import { type Clock, explain, type Logger, type Tracer } from "../../ground/base/index.ts";
import type { AgentConfig, KubeletConfiguration } from "../../ground/config/index.ts";
import type { CallReport } from "./call-log.ts";
import { cgroupDriverOf } from "./cgroup-driver.ts";
import { CriClient } from "./client.ts";
import { parseEndpoint } from "./endpoint.ts";
import { RuntimeHandshake } from "./handshake.ts";
import type { RuntimeIdentity } from "./identity.ts";
import type { ImageContent } from "./image-content.ts";

export interface RuntimeConnectionPorts {
  readonly clock: Clock;
  readonly onCall: (report: CallReport) => void;
  readonly tracer?: Tracer;
}

/** The way to the container runtime. Connects by itself; until then calls fail as Unavailable. */
export type RuntimeConnection = Pick<
  CriClient,
  "runtime" | "images" | "containerdEvents" | "containerdUsage" | "health" | "close"
> & {
  /** Runtimes that can't tell how far they are with a pull have none. */
  readonly imageContent?: ImageContent;
};

/** What the runtime said of itself when it answered first. */
export interface ConnectedRuntime {
  readonly identity: RuntimeIdentity;
  readonly cgroupDriver: "systemd" | "cgroupfs";
  /** It does not tell its cgroup driver, as the kubelet will want of every runtime. */
  readonly isOutdated: boolean;
}

export type RuntimeSettings = Pick<
  KubeletConfiguration,
  "containerRuntimeEndpoint" | "imageServiceEndpoint" | "cgroupDriver"
>;

/** How the runtime is doing; `provenAt` is on the clock's monotonic scale. */
export type RuntimeHealth =
  | { readonly state: "ok"; readonly provenAt: number }
  | { readonly state: "waiting"; readonly reason: string; readonly provenAt?: number }
  | { readonly state: "failed"; readonly reason: string };

export interface RuntimeLinkPorts {
  readonly cri: RuntimeConnection;
  readonly clock: Clock;
  readonly log: Logger;
  readonly health: { watch(name: string, check: () => RuntimeHealth): void };
}

/** The connection to the container runtime: waited for at start, watched ever after. */
export class RuntimeLink {
  readonly #settings: RuntimeSettings;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #cri: RuntimeConnection;
  readonly #handshake: RuntimeHandshake;
  #connected: ConnectedRuntime | undefined;

  constructor(settings: RuntimeSettings, ports: RuntimeLinkPorts) {
    const { clock, log } = ports;
    this.#settings = settings;
    this.#clock = clock;
    this.#log = log;
    for (const endpoint of [settings.containerRuntimeEndpoint, settings.imageServiceEndpoint]) {
      const deprecated = endpoint === "" ? undefined : parseEndpoint(endpoint).deprecated;
      if (deprecated !== undefined) log.warn(deprecated);
    }
    const { cri } = ports;
    this.#cri = cri;
    this.#handshake = new RuntimeHandshake({ runtime: cri.runtime, images: cri.images, clock, log });
    ports.health.watch("runtime", this.#check);
  }

  /** undefined: the runtime has not answered yet. */
  get connected(): ConnectedRuntime | undefined {
    return this.#connected;
  }

  /** Throws while the runtime has not answered yet. */
  get runtime(): ConnectedRuntime {
    if (this.#connected === undefined) throw new Error("the agent has not reached the container runtime yet");
    return this.#connected;
  }

  /** Waits for the runtime as long as it takes; rejects when it answers but cannot be worked with. */
  async connect(signal: AbortSignal): Promise<ConnectedRuntime> {
    const log = this.#log;
    const identity = await this.#handshake.run(signal);
    const wanted = await cgroupDriverOf({ runtime: this.#cri.runtime, clock: this.#clock, log }, signal);
    const cgroupDriver = wanted ?? asDriver(this.#settings.cgroupDriver);
    const source = wanted === undefined ? "configuration" : "container runtime";
    log.info("Using cgroup driver", { cgroupDriver, source });
    this.#connected = { identity, cgroupDriver, isOutdated: wanted === undefined };
    return this.#connected;
  }

  readonly #check = (): RuntimeHealth => {
    const { state } = this.#handshake;
    const where = this.#settings.containerRuntimeEndpoint;
    if (state.phase === "refused") return { state: "failed", reason: state.reason };
    if (state.phase !== "ready") {
      const why = state.phase === "connecting" ? (state.lastError ?? "connecting") : "not tried yet";
      return { state: "waiting", reason: `the container runtime at ${where}: ${why}` };
    }
    const { lastAnswerAt, unansweredInARow, lastFailure } = this.#cri.health();
    const provenAt = lastAnswerAt ?? state.at;
    if (unansweredInARow === 0) return { state: "ok", provenAt };
    const why = explain(lastFailure?.error ?? "no answer");
    return { state: "waiting", reason: `the container runtime at ${where} does not answer: ${why}`, provenAt };
  };
}

/** The runtime at the configured endpoints; connects by itself when it is first called. */
export function criConnection({ kubelet }: AgentConfig, ports: RuntimeConnectionPorts): RuntimeConnection {
  return new CriClient(
    {
      runtimeEndpoint: kubelet.containerRuntimeEndpoint,
      imageEndpoint: kubelet.imageServiceEndpoint,
      requestTimeoutMs: kubelet.runtimeRequestTimeoutMs,
    },
    ports,
  );
}

function asDriver(configured: string): "systemd" | "cgroupfs" {
  if (configured === "systemd" || configured === "cgroupfs") return configured;
  throw new Error(`cgroupDriver "${configured}" is unknown; want "systemd" or "cgroupfs"`);
}
