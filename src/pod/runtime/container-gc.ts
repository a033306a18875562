import {
  type Container,
  ContainerState,
  criCodeOf,
  type PodSandbox,
  PodSandboxState,
  type RuntimeService,
} from "../../connections/cri/index.ts";
import { type Clock, isAbort, Limiter, type Logger, messageOf } from "../../ground/base/index.ts";
import type { ObservedPod, PodUid, RecordNodeEvent, SandboxId } from "../../ground/model/index.ts";
import { type ContainerLimits, chooseContainers, chooseEnded, chooseSandboxes } from "./container-gc-choice.ts";
import { ContainerRemoval } from "./container-removal.ts";
import {
  type ForeseenLogs,
  foreseePodLogs,
  type LogDirectories,
  removeDanglingLinks,
  removePodLogs,
} from "./log-cleanup.ts";
import { runtimeLabels } from "./mapping/index.ts";
import { translateContainer, translateContainerState } from "./translate.ts";

export interface ContainerGcSettings extends ContainerLimits, LogDirectories {
  /** Dead containers younger than this stay. */
  readonly minimumAgeMs: number;
}

export interface ContainerGcPorts {
  readonly runtime: Pick<
    RuntimeService,
    | "listContainers"
    | "listPodSandbox"
    | "containerStatus"
    | "stopContainer"
    | "removeContainer"
    | "stopPodSandbox"
    | "removePodSandbox"
  >;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordNodeEvent: RecordNodeEvent;
  /** Before that, a pod that nobody wants may merely not have been read yet. */
  readonly allSourcesReady: () => boolean;
  /** The pod is evicted, or deleted and terminated, or was never heard of: nothing of it is needed. */
  readonly mayRemoveContent: (uid: PodUid) => boolean;
  /** The pod has stopped for good, though it may still exist. */
  readonly mayRemoveRuntime: (uid: PodUid) => boolean;
}

/** An agent that was killed has left something, as likely as not. */
const firstCheckMs = 5_000;
const checkEveryMs = 60_000;
const checkWhenQuietMs = 5 * 60_000;
/** Whoever made a container is about to start it. */
const startingMs = 60_000;

/** Removes dead containers, unneeded sandboxes, and logs of pods that are gone. */
export class ContainerGc {
  readonly #settings: ContainerGcSettings;
  readonly #ports: ContainerGcPorts;
  readonly #removal: ContainerRemoval;
  readonly #turn = new Limiter(1);
  #nextCheckAt: number;

  /** `removal` is shared with whoever else removes containers. */
  constructor(settings: ContainerGcSettings, ports: ContainerGcPorts, removal = new ContainerRemoval(settings, ports)) {
    this.#settings = settings;
    this.#ports = ports;
    this.#removal = removal;
    this.#nextCheckAt = ports.clock.monotonic() + firstCheckMs;
  }

  /** When (by the clock that is never set) to call `collect` next: soon after the start, then a minute after something was done or noted, later on a quiet node. */
  get nextCheckAt(): number {
    return this.#nextCheckAt;
  }

  /** Something ended or was deleted: there may be work. */
  noteChange(): void {
    this.#nextCheckAt = Math.min(this.#nextCheckAt, this.#ports.clock.monotonic() + checkEveryMs);
  }

  /** The periodic round. Failures end as log lines and an event; the next round tries again. */
  async collect(signal: AbortSignal): Promise<void> {
    this.#nextCheckAt = this.#ports.clock.monotonic() + checkWhenQuietMs;
    const { mayRemoveContent } = this.#ports;
    await this.#turn.run(() => this.#round(mayRemoveContent, signal), signal);
  }

  /** For eviction: also what remains of pods that have stopped but still exist. */
  async deleteAllUnused(signal: AbortSignal): Promise<void> {
    const { mayRemoveContent, mayRemoveRuntime } = this.#ports;
    await this.#turn.run(() => this.#round((uid) => mayRemoveContent(uid) || mayRemoveRuntime(uid), signal), signal);
  }

  /** What a round would remove now; `everything`: one for an eviction. */
  async foresee(request: "usual" | "everything", signal: AbortSignal): Promise<readonly ForeseenRemoval[]> {
    const { runtime, allSourcesReady, mayRemoveContent, mayRemoveRuntime } = this.#ports;
    const isPodOver = (uid: string): boolean =>
      mayRemoveContent(uid as PodUid) || (request === "everything" && mayRemoveRuntime(uid as PodUid));
    const { items } = await runtime.listPodSandbox({ filter: undefined }, { signal });
    const { containers } = await runtime.listContainers({ filter: undefined }, { signal });
    const dead = this.#chooseDead(containers, (uid) => allSourcesReady() && isPodOver(uid));
    const gone = new Set(dead.map(({ id }) => id));
    const inUse = new Set(containers.filter(({ id }) => !gone.has(id)).map(({ podSandboxId }) => podSandboxId));
    const sandboxes = chooseSandboxes(
      items.map((item) => describeSandbox(item, inUse.has(item.id))),
      isPodOver,
    );
    const chosen = new Set(sandboxes.map(({ id }) => id));
    return [
      ...dead.map((container) => foreseen("container", container)),
      ...items.filter(({ id }) => chosen.has(id)).map((sandbox) => foreseen("sandbox", sandbox)),
    ];
  }

  /** Logs of pods that are gone, which a round would remove now. */
  async foreseeLogs(signal: AbortSignal): Promise<readonly ForeseenLogs[]> {
    const { allSourcesReady, mayRemoveContent } = this.#ports;
    if (!allSourcesReady()) return [];
    return await foreseePodLogs(this.#settings.podLogsDir, (uid) => mayRemoveContent(uid as PodUid), signal);
  }

  /** Right after a container ended: removes older instances of its name, or all when the pod is over. */
  async pruneDead(observed: ObservedPod, signal: AbortSignal): Promise<void> {
    const keep = this.#ports.mayRemoveContent(observed.uid) ? 0 : Math.max(this.#settings.maxPerContainer, 1);
    const ended = observed.containers.filter(({ state }) => state === "exited");
    for (const container of chooseEnded(ended, keep)) {
      await this.#attempt("container", container.id, () => this.#removal.remove(container, signal), signal);
    }
  }

  async #round(isPodOver: (uid: PodUid) => boolean, signal: AbortSignal): Promise<void> {
    const { allSourcesReady, mayRemoveContent, recordNodeEvent, log } = this.#ports;
    const isReady = allSourcesReady();
    const failures: string[] = [];
    let done = 0;
    const step = async (work: () => Promise<number>): Promise<void> => {
      try {
        done += await work();
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        log.error("Container garbage collection failed", error);
        failures.push(messageOf(error));
      }
    };
    await step(() => this.#removeFromRuntime(isReady, isPodOver, signal));
    if (isReady) {
      await step(() => removePodLogs(this.#settings.podLogsDir, (uid) => mayRemoveContent(uid as PodUid), signal));
    }
    await step(async () => {
      await removeDanglingLinks(this.#settings.legacyDir, (id) => this.#isEnded(id, signal), signal);
      return 0;
    });
    if (done > 0 || failures.length > 0 || !isReady) this.noteChange();
    if (failures.length === 0) return;
    const message = failures.length === 1 ? (failures[0] ?? "") : `[${[...new Set(failures)].join(", ")}]`;
    recordNodeEvent({ type: "Warning", reason: "ContainerGCFailed", message });
  }

  async #removeFromRuntime(
    isReady: boolean,
    isPodOver: (uid: PodUid) => boolean,
    signal: AbortSignal,
  ): Promise<number> {
    const { runtime } = this.#ports;
    // Sandboxes first: one made in between is then not taken for one without containers.
    const { items } = await runtime.listPodSandbox({ filter: undefined }, { signal });
    const { containers } = await runtime.listContainers({ filter: undefined }, { signal });
    const dead = this.#chooseDead(containers, (uid) => isReady && isPodOver(uid as PodUid));
    const removed = new Set<string>();
    for (const container of dead) {
      const isGone = await this.#attempt("container", container.id, () => this.#remove(container, signal), signal);
      if (isGone) removed.add(container.id);
    }
    const inUse = new Set(containers.filter(({ id }) => !removed.has(id)).map(({ podSandboxId }) => podSandboxId));
    const sandboxes = chooseSandboxes(
      items.map((item) => describeSandbox(item, inUse.has(item.id))),
      (uid) => isPodOver(uid as PodUid),
    );
    for (const { id } of sandboxes) {
      await this.#attempt("sandbox", id, () => this.#removeSandbox(id, signal), signal);
    }
    return dead.length + sandboxes.length;
  }

  #chooseDead(containers: readonly Container[], isPodOver: (uid: string) => boolean): readonly Container[] {
    const now = this.#ports.clock.now();
    const dead = containers
      .filter(({ state }) => state !== ContainerState.CONTAINER_RUNNING)
      .map((container) => ({ container, ...describe(container) }))
      .filter(({ container, podUid, createdAt }) => {
        const age = now - createdAt;
        // One of a time yet to come was made before the clock was set back, and may be of any age.
        if (age >= 0 && age < this.#settings.minimumAgeMs) return false;
        const isStarting = container.state === ContainerState.CONTAINER_CREATED && Math.abs(age) < startingMs;
        return !isStarting || isPodOver(podUid);
      });
    return chooseContainers(dead, this.#settings, isPodOver).map(({ container }) => container);
  }

  /** The list does not tell where a container logs. */
  async #remove(container: Container, signal: AbortSignal): Promise<void> {
    const status = await this.#statusOf(container.id, signal);
    if (status === undefined) return;
    await this.#removal.remove(translateContainer(status, container.podSandboxId as SandboxId), signal);
  }

  async #removeSandbox(podSandboxId: string, signal: AbortSignal): Promise<void> {
    const { runtime } = this.#ports;
    // Stopping again frees the network of a sandbox that fell over.
    await runtime.stopPodSandbox({ podSandboxId }, { signal });
    await runtime.removePodSandbox({ podSandboxId }, { signal });
  }

  /** One thing that cannot be removed must not keep the others. */
  async #attempt(kind: string, id: string, work: () => Promise<void>, signal: AbortSignal): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#ports.log.error(`Failed to remove ${kind}`, error, { id });
      return false;
    }
  }

  async #isEnded(id: string, signal: AbortSignal): Promise<boolean> {
    const status = await this.#statusOf(id, signal);
    return status === undefined || translateContainerState(status.state) === "exited";
  }

  async #statusOf(containerId: string, signal: AbortSignal) {
    try {
      return (await this.#ports.runtime.containerStatus({ containerId, verbose: false }, { signal })).status;
    } catch (error) {
      if (criCodeOf(error) === "NotFound") return undefined;
      throw error;
    }
  }
}

export interface ForeseenRemoval {
  readonly kind: "container" | "sandbox";
  readonly id: string;
  /** `namespace/name`. */
  readonly pod: string;
  readonly name: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

function foreseen(
  kind: ForeseenRemoval["kind"],
  { id, labels, metadata, createdAt }: Pick<Container | PodSandbox, "id" | "labels" | "metadata" | "createdAt">,
): ForeseenRemoval {
  const pod = `${labels[runtimeLabels.podNamespace] ?? ""}/${labels[runtimeLabels.podName] ?? ""}`;
  return { kind, id, pod, name: metadata?.name ?? "", createdAt: Number(createdAt / 1_000_000n) };
}

function describe({ id, labels, metadata, createdAt, state }: Container) {
  return {
    isUnstarted: state === ContainerState.CONTAINER_CREATED,
    id,
    podUid: labels[runtimeLabels.podUid] ?? "",
    name: labels[runtimeLabels.containerName] ?? metadata?.name ?? "",
    attempt: metadata?.attempt ?? 0,
    createdAt: Number(createdAt / 1_000_000n),
  };
}

function describeSandbox({ id, metadata, state, createdAt }: PodSandbox, hasContainers: boolean) {
  return {
    id,
    podUid: metadata?.uid ?? "",
    attempt: metadata?.attempt ?? 0,
    createdAt: Number(createdAt / 1_000_000n),
    isNeeded: state === PodSandboxState.SANDBOX_READY || hasContainers,
  };
}
