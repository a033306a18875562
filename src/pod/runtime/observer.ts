import {
  type Container,
  CriError,
  type CriOperation,
  type PodSandbox,
  type RuntimeService,
} from "../../connections/cri/index.ts";
import { aFewAtOnce, type Clock, cutText, mapAtMost } from "../../ground/base/index.ts";
import {
  type ContainerId,
  listedState,
  newerFirst,
  type ObservedContainer,
  type ObservedPod,
  type ObservedSandbox,
  type PodUid,
  type SandboxId,
} from "../../ground/model/index.ts";
import { runtimeLabels } from "./mapping/index.ts";
import { translateContainer, translateContainerState, translateSandbox, translateSandboxState } from "./translate.ts";

/**
 * Reads what the runtime really has of one pod, and remembers it. A reading costs two filtered lists; the details of
 * a sandbox or container are asked for only when its state differs from the one remembered, because everything else
 * about it is fixed, or when what was said of the pod is in doubt.
 */
export class PodObserver {
  readonly #runtime: RuntimeService;
  readonly #clock: Clock;
  readonly #wasOomKilled: (id: string) => boolean;
  readonly #latest = new Map<PodUid, ObservedPod>();
  readonly #owners = new Map<string, PodUid>();
  readonly #doubted = new Set<PodUid>();
  readonly #awaitedEnds = new Set<AwaitedEnd>();

  constructor(ports: PodObserverPorts) {
    this.#runtime = ports.runtime;
    this.#clock = ports.clock;
    this.#wasOomKilled = ports.wasOomKilled ?? (() => false);
  }

  /** What was seen at the last inspection; undefined when the pod was never inspected or is forgotten. */
  latest(uid: PodUid): ObservedPod | undefined {
    return this.#latest.get(uid);
  }

  all(): IterableIterator<ObservedPod> {
    return this.#latest.values();
  }

  /** Those that ran when they were last looked at. */
  *runningContainers(): IterableIterator<ObservedContainer> {
    for (const { containers } of this.#latest.values()) {
      for (const container of containers) if (container.state === "running") yield container;
    }
  }

  /** The pod that a sandbox or container id belongs to, if it was ever seen. */
  ownerOf(id: string): PodUid | undefined {
    return this.#owners.get(id);
  }

  /** Lets hints about a thing just made find its pod before the next inspection. */
  noteOwner(id: ContainerId | SandboxId, uid: PodUid): void {
    this.#owners.set(id, uid);
  }

  /**
   * The pod can't go on by what is remembered of it: ask for all details again. A wrong word of the runtime, such as
   * another name for a container, would otherwise stand for as long as the container.
   */
  doubt(uid: PodUid): void {
    this.#doubted.add(uid);
  }

  forget(uid: PodUid): void {
    this.#doubted.delete(uid);
    this.#latest.delete(uid);
    for (const [id, owner] of this.#owners) if (owner === uid) this.#owners.delete(id);
  }

  /** A signal that fires when an inspection finds that the container has ended, or is gone. Dispose of it. */
  endOf(uid: PodUid, id: ContainerId): Disposable & { readonly signal: AbortSignal } {
    const controller = new AbortController();
    const awaited: AwaitedEnd = { uid, id, since: this.#clock.monotonic(), controller };
    this.#awaitedEnds.add(awaited);
    return { signal: controller.signal, [Symbol.dispose]: () => this.#awaitedEnds.delete(awaited) };
  }

  /** For who works on the pod, and for nobody beside it: what it was once told it is not told again. */
  async inspect(uid: PodUid, signal: AbortSignal): Promise<ObservedPod> {
    // A doubt that comes up meanwhile is for the next time.
    const observed = await this.#read(uid, this.#doubted.delete(uid), signal);
    this.#remember(observed);
    return observed;
  }

  /**
   * For everybody else. It is not remembered: the relist compares with what is, and would find nothing amiss that the
   * pod's own worker has yet to hear of.
   */
  look(uid: PodUid, signal: AbortSignal): Promise<ObservedPod> {
    return this.#read(uid, this.#doubted.has(uid), signal);
  }

  async #read(uid: PodUid, isInDoubt: boolean, signal: AbortSignal): Promise<ObservedPod> {
    const observedAt = this.#clock.monotonic();
    const previous = this.#latest.get(uid);
    const trusted = isInDoubt ? undefined : previous;
    const labelSelector = { [runtimeLabels.podUid]: uid };
    const [{ items }, { containers: listed }] = await Promise.all([
      this.#runtime.listPodSandbox({ filter: { id: "", state: undefined, labelSelector } }, { signal }),
      this.#runtime.listContainers(
        { filter: { id: "", state: undefined, podSandboxId: "", labelSelector } },
        { signal },
      ),
    ]);
    const [sandboxes, containers] = await Promise.all([
      mapAtMost(aFewAtOnce, items, (item) => this.#sandbox(item, trusted, signal)),
      mapAtMost(aFewAtOnce, listed, (item) => this.#container(item, trusted, signal)),
    ]);
    const known = {
      sandboxes: newestFirst(sandboxes),
      containers: newestFirst(containers),
    };
    const name = items[0]?.metadata?.name ?? previous?.name ?? "";
    const namespace = items[0]?.metadata?.namespace ?? previous?.namespace ?? "";
    return { uid, name, namespace, observedAt, ...known, ips: ipsOf(known.sandboxes, previous) };
  }

  #remember(observed: ObservedPod): void {
    const { uid, sandboxes, containers } = observed;
    for (const { id } of [...sandboxes, ...containers]) this.#owners.set(id, uid);
    for (const { id } of [...(this.#latest.get(uid)?.sandboxes ?? []), ...(this.#latest.get(uid)?.containers ?? [])]) {
      if (!sandboxes.some((sandbox) => sandbox.id === id) && !containers.some((container) => container.id === id)) {
        this.#owners.delete(id);
      }
    }
    this.#latest.set(uid, observed);
    for (const awaited of this.#awaitedEnds) {
      if (awaited.uid === uid && hasEnded(awaited, observed)) awaited.controller.abort();
    }
  }

  async #sandbox(
    item: PodSandbox,
    previous: ObservedPod | undefined,
    signal: AbortSignal,
  ): Promise<ObservedSandbox | undefined> {
    const remembered = previous?.sandboxes.find((sandbox) => sandbox.id === item.id);
    if (remembered !== undefined && remembered.state === translateSandboxState(item.state)) return remembered;
    return ifFound(async () => {
      const { status } = await this.#runtime.podSandboxStatus({ podSandboxId: item.id, verbose: false }, { signal });
      if (status === undefined) return undefined;
      refuseContradiction("podSandboxStatus", item, status);
      return translateSandbox(status);
    });
  }

  /** Runtimes learn of such a kill beside the container's end, and miss it where that comes first. */
  #asEnded(container: ObservedContainer): ObservedContainer {
    const { id, state, reason } = container;
    const isMissed = state === "exited" && reason !== oomKilled && this.#wasOomKilled(id);
    return isMissed ? { ...container, reason: oomKilled } : container;
  }

  async #container(
    item: Container,
    previous: ObservedPod | undefined,
    signal: AbortSignal,
  ): Promise<ObservedContainer | undefined> {
    const remembered = previous?.containers.find((container) => container.id === item.id);
    if (remembered !== undefined && listedState(remembered) === translateContainerState(item.state)) return remembered;
    return ifFound(async () => {
      const { status } = await this.#runtime.containerStatus({ containerId: item.id, verbose: false }, { signal });
      if (status === undefined) return undefined;
      refuseContradiction("containerStatus", item, status);
      return this.#asEnded(translateContainer(status, item.podSandboxId as SandboxId));
    });
  }
}

export interface PodObserverPorts {
  readonly runtime: RuntimeService;
  readonly clock: Clock;
  /** Whether the kernel killed a process of this container for want of memory. */
  readonly wasOomKilled?: (id: string) => boolean;
}

interface Named {
  readonly id: string;
  readonly metadata: { readonly name: string; readonly attempt: number } | undefined;
}

/** By a container under another name, or of another attempt, the pod would be given a second one beside it. */
function refuseContradiction(operation: CriOperation, listed: Named, status: Named): void {
  const describe = ({ id, metadata }: Named): string => `${id} (${metadata?.name}, attempt ${metadata?.attempt})`;
  const [asked, answered] = [describe(listed), describe(status)];
  if (asked === answered) return;
  const problem = `the runtime lists ${asked}, but reports ${answered} when asked for it; asking again`;
  throw new CriError("Internal", operation, cutText(problem, longestProblemBytes));
}

const oomKilled = "OOMKilled";

/** Names come from the runtime and may be of any length. */
const longestProblemBytes = 1_000;

/** Something may vanish between the list and the question about it. */
async function ifFound<Result>(ask: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof CriError && error.code === "NotFound") return undefined;
    throw error;
  }
}

interface AwaitedEnd {
  readonly uid: PodUid;
  readonly id: ContainerId;
  readonly since: number;
  readonly controller: AbortController;
}

function hasEnded({ id, since }: AwaitedEnd, { containers, observedAt }: ObservedPod): boolean {
  const found = containers.find((container) => container.id === id);
  // A list that began earlier may not have it yet.
  return found === undefined ? observedAt > since : listedState(found) === "exited";
}

function newestFirst<Item extends { readonly attempt: number; readonly createdAt: number }>(
  items: readonly (Item | undefined)[],
): readonly Item[] {
  return items.filter((item) => item !== undefined).sort(newerFirst);
}

// A finished pod keeps the addresses it had: users still want to know them.
function ipsOf(sandboxes: readonly ObservedSandbox[], previous: ObservedPod | undefined): readonly string[] {
  const [newest] = sandboxes;
  if (newest?.state !== "ready") return previous?.ips ?? [];
  const ips = [newest.ip ?? "", ...newest.additionalIps].filter((ip) => ip !== "");
  return ips.length > 0 || newest.network === "node" ? ips : (previous?.ips ?? []);
}
