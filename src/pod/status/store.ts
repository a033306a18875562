import type { Logger } from "../../ground/base/index.ts";
import {
  containersOf,
  type IdentifiedPod,
  jsonEqual,
  named,
  type PodStatus,
  type PodUid,
  restartsAfter,
  uidOf,
  usesRestartAll,
} from "../../ground/model/index.ts";

/** The newest status of every pod. Whoever shows or sends statuses listens here. */
export class StatusStore {
  readonly #statuses = new Map<PodUid, PodStatus>();
  readonly #listeners = new Set<StatusListener>();
  readonly #confirmListeners = new Set<StatusListener>();
  /** Of an earlier run of the agent, and not looked at since. */
  readonly #unconfirmed = new Set<PodUid>();
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  get(uid: PodUid): PodStatus | undefined {
    return this.#statuses.get(uid);
  }

  /** Seeds the status that an earlier run of the agent left; listeners are not told. */
  restore(uid: PodUid, status: PodStatus): void {
    this.#statuses.set(uid, status);
    this.#unconfirmed.add(uid);
  }

  accepts(pod: IdentifiedPod, status: PodStatus): boolean {
    const before = this.#statuses.get(uidOf(pod));
    return before === undefined || illegalTransition(pod, before, status) === undefined;
  }

  /** Stores a status; listeners hear of it only if something a user can see has changed. */
  set(pod: IdentifiedPod, status: PodStatus): void {
    const uid = uidOf(pod);
    const before = this.#statuses.get(uid);
    const isConfirmed = this.#unconfirmed.delete(uid);
    if (before !== undefined && jsonEqual(before, status)) {
      if (isConfirmed) this.#tell(this.#confirmListeners, pod, status, before);
      return;
    }
    const illegal = before === undefined ? undefined : illegalTransition(pod, before, status);
    if (illegal !== undefined) {
      this.#log.error("Refused a status that would bring an ended container back to life", new Error(illegal), {
        pod: pod.metadata.name,
        namespace: pod.metadata.namespace,
      });
      return;
    }
    this.#statuses.set(uid, status);
    this.#tell(this.#listeners, pod, status, before);
  }

  delete(uid: PodUid): void {
    this.#statuses.delete(uid);
    this.#unconfirmed.delete(uid);
  }

  onChange(listener: StatusListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Told when a restored status turns out to be true still, of which those who listen to changes hear nothing. */
  onConfirm(listener: StatusListener): () => void {
    this.#confirmListeners.add(listener);
    return () => this.#confirmListeners.delete(listener);
  }

  #tell(
    listeners: ReadonlySet<StatusListener>,
    pod: IdentifiedPod,
    status: PodStatus,
    before: PodStatus | undefined,
  ): void {
    for (const listener of listeners) {
      try {
        listener(pod, status, before);
      } catch (error) {
        // Who can't make sense of one pod's status keeps neither the others from hearing of it nor the pod from going on.
        const { name, namespace } = pod.metadata;
        this.#log.error("A listener failed to handle a pod's status", error, { pod: name, namespace });
      }
    }
  }
}

export type StatusListener = (pod: IdentifiedPod, status: PodStatus, before: PodStatus | undefined) => void;

/** A container that ended and is not to start again stays ended, whatever a confused runtime may say. */
function illegalTransition(pod: IdentifiedPod, before: PodStatus, after: PodStatus): string | undefined {
  if (usesRestartAll(pod)) return undefined;
  const specs = new Map(containersOf(pod).map((entry) => [entry.container.name, entry]));
  const later = [...(after.initContainerStatuses ?? []), ...(after.containerStatuses ?? [])];
  for (const old of [...(before.initContainerStatuses ?? []), ...(before.containerStatuses ?? [])]) {
    const ended = old.state?.terminated;
    const entry = specs.get(old.name);
    if (ended === undefined || entry === undefined || entry.kind === "sidecar") continue;
    if (restartsAfter(pod, entry.container, ended.exitCode)) continue;
    const now = named(later, old.name);
    // Stopped with a sandbox that died, and started again in the next one: then that is what runs.
    if (now?.state?.running !== undefined && now.restartCount > old.restartCount) continue;
    if (now !== undefined && now.state?.terminated === undefined) {
      return `terminated container ${old.name} attempted illegal transition to non-terminated state`;
    }
  }
  return undefined;
}
