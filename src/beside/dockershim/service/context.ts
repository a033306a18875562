import { join } from "node:path";
import type { Clock, Logger } from "../../../ground/base/index.ts";
import type { Checkpoints } from "../checkpoints.ts";
import type { Engine, EngineInfo, InspectedContainer } from "../engine/index.ts";
import type { LogCopies, LogPaths } from "../logs/log-copies.ts";
import { isPart, logPathLabel } from "../mapping/labels.ts";
import type { ShimMetrics } from "../metrics.ts";
import type { CniNetwork } from "../network/cni.ts";
import type { ShimSettings } from "../settings.ts";
import type { Looks } from "./looks.ts";

/** What tells a part of a pod from any other container. */
export type PartOfPod = Pick<InspectedContainer, "id" | "name" | "labels">;

/** What all parts of the service work with. */
export interface ShimContext {
  readonly settings: ShimSettings;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Logger;
  readonly facts: EngineFacts;
  readonly looks: Looks;
  readonly metrics: ShimMetrics;
  readonly checkpoints: Checkpoints;
  readonly copies: LogCopies;
  /** Undefined: Docker's own bridge gives pods their network. */
  readonly cni: CniNetwork | undefined;
  /** Wall-clock nanoseconds, never the same twice. */
  readonly stamp: () => bigint;
  /** The lowest score that a process of ours may give another one. */
  readonly lowestOomScore: number;
  /** Aborted when the shim ends; for work that must be finished although its caller has left. */
  readonly signal: AbortSignal;
}

/** What Docker says of itself; asked again after it was away. */
export class EngineFacts {
  readonly #engine: Engine;
  #info: EngineInfo | undefined;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async info(signal: AbortSignal): Promise<EngineInfo> {
    this.#info ??= await this.#engine.info(signal);
    return this.#info;
  }

  forget(): void {
    this.#info = undefined;
  }
}

export function nanoStamps(clock: Clock): () => bigint {
  let last = 0n;
  return () => {
    const now = BigInt(Math.trunc(clock.now() * 1000)) * 1000n;
    last = now > last ? now : last + 1n;
    return last;
  };
}

/** Where the log of a container comes from and goes to; undefined when it has none, or is no part of a pod. */
export function logPathsOf(container: PartOfPod, info: EngineInfo): LogPaths | undefined {
  const { id, labels } = container;
  const target = labels[logPathLabel];
  if (target === undefined || target === "" || !isPart(container, "container")) return undefined;
  return { source: join(info.rootDir, "containers", id, `${id}-json.log`), target };
}
