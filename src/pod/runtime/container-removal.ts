import { criCodeOf, type RuntimeService } from "../../connections/cri/index.ts";
import type { Logger } from "../../ground/base/index.ts";
import type { ObservedContainer } from "../../ground/model/index.ts";
import { type LogDirectories, removeContainerLogs, removeEarlierLogs } from "./log-cleanup.ts";

export type RemovableContainer = Pick<ObservedContainer, "id" | "logPath" | "state"> & {
  readonly annotations: Pick<ObservedContainer["annotations"], "terminationGraceSeconds">;
};

export interface RemovalPorts {
  readonly runtime: Pick<RuntimeService, "stopContainer" | "removeContainer">;
  readonly log: Logger;
}

/** What becomes of the container's log; whoever keeps it has nothing left of earlier ones. */
export type LeftLogs = "remove" | "keep";

const shortestStopSeconds = 2;

/** Removes a dead container: its logs, the link to them, then the container, so that a failure can be repeated. */
export class ContainerRemoval {
  readonly #directories: LogDirectories;
  readonly #ports: RemovalPorts;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(directories: LogDirectories, ports: RemovalPorts) {
    this.#directories = directories;
    this.#ports = ports;
  }

  /** A runtime refuses a second removal while the first is under way, so that one is waited for. */
  async remove(container: RemovableContainer, signal: AbortSignal, logs: LeftLogs = "remove"): Promise<void> {
    const { id } = container;
    for (let other = this.#underWay.get(id); other !== undefined; other = this.#underWay.get(id)) {
      await Promise.allSettled([other]);
    }
    const removal = this.#remove(container, signal, logs);
    this.#underWay.set(id, removal);
    try {
      await removal;
    } finally {
      this.#underWay.delete(id);
    }
  }

  async #remove(container: RemovableContainer, signal: AbortSignal, logs: LeftLogs): Promise<void> {
    const { runtime, log } = this.#ports;
    const containerId = container.id;
    if (container.state === "unknown") await this.#stop(container, signal);
    if (logs === "keep") await removeEarlierLogs(container, this.#directories);
    else if ((await removeContainerLogs(container, this.#directories)) === "outside") {
      const { podLogsDir } = this.#directories;
      log.warn("Container logs outside of the pod logs directory, left there", { path: container.logPath, podLogsDir });
    }
    await unlessMissing(runtime.removeContainer({ containerId }, { signal }));
  }

  /** What is in an unknown state may be running. */
  async #stop({ id, annotations }: RemovableContainer, signal: AbortSignal): Promise<void> {
    const { runtime, log } = this.#ports;
    log.info("Container is in unknown state, try killing it before removal", { containerID: id });
    const seconds = Math.max(annotations.terminationGraceSeconds ?? 0, shortestStopSeconds);
    await unlessMissing(runtime.stopContainer({ containerId: id, timeout: BigInt(seconds) }, { signal }));
  }
}

async function unlessMissing(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (criCodeOf(error) !== "NotFound") throw error;
  }
}
