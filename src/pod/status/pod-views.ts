import type { LedgerView } from "../../ground/base/index.ts";
import {
  fullName,
  type IdentifiedPod,
  isMirrorPod,
  isStaticPod,
  type Pod,
  type PodLedger,
  type PodStatus,
  type PodUid,
  type PodViewChange,
  uidOf,
} from "../../ground/model/index.ts";
import type { StatusStore } from "./store.ts";

/** The pods as this node shows them: the wanted ones, and those still on their way out. */
export class PodViews {
  readonly #statuses: StatusStore;
  readonly #ledger: PodLedger;
  readonly #listeners = new Set<(change: PodViewChange) => void>();
  readonly #shown = new Map<PodUid, IdentifiedPod>();
  readonly #wanted: () => readonly IdentifiedPod[];

  constructor(ports: {
    readonly statuses: StatusStore;
    readonly ledger: PodLedger;
    /** Of all sources, mirrors too. */
    readonly wanted: () => readonly IdentifiedPod[];
  }) {
    this.#wanted = ports.wanted;
    this.#statuses = ports.statuses;
    this.#ledger = ports.ledger;
    ports.statuses.onChange((pod, status) => this.#changed(pod, status));
    // Who watches since before the agent had read what it left on disk was shown the pod without a status.
    ports.statuses.onConfirm((pod, status) => this.#changed(pod, status));
  }

  pods(): readonly Pod[] {
    return [...this.#shown.values()].map((pod) => withStatus(pod, this.#statuses.get(uidOf(pod))));
  }

  ownUid(apiUid: string): PodUid {
    const mirror = this.#wanted().find((pod) => pod.metadata.uid === apiUid && isMirrorPod(pod));
    const name = mirror === undefined ? undefined : fullName(mirror);
    const own = [...this.#shown.values()].find((pod) => isStaticPod(pod) && fullName(pod) === name);
    return own === undefined ? (apiUid as PodUid) : uidOf(own);
  }

  watchPods(listener: (change: PodViewChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ledger(uid: PodUid): LedgerView | undefined {
    return this.#ledger.read(uid);
  }

  /** A pod has come, or a new version of it. */
  wanted(pod: IdentifiedPod): void {
    const before = this.#shown.get(uidOf(pod));
    this.#shown.set(uidOf(pod), pod);
    const object = withStatus(pod, this.#statuses.get(uidOf(pod)));
    if (before !== pod) this.#tell({ type: before === undefined ? "ADDED" : "MODIFIED", object });
  }

  gone(uid: PodUid): void {
    const pod = this.#shown.get(uid);
    this.#shown.delete(uid);
    if (pod !== undefined) this.#tell({ type: "DELETED", object: pod });
  }

  #changed(pod: IdentifiedPod, status: PodStatus): void {
    const type = this.#shown.has(uidOf(pod)) ? "MODIFIED" : "ADDED";
    this.#shown.set(uidOf(pod), pod);
    this.#tell({ type, object: withStatus(pod, status) });
  }

  #tell(change: PodViewChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

function withStatus(pod: IdentifiedPod, status: PodStatus | undefined): Pod {
  return status === undefined ? pod : { ...pod, status };
}
