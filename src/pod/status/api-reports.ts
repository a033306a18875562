import type { Clock, Logger, TaskScope } from "../../ground/base/index.ts";
import {
  fullName,
  type IdentifiedPod,
  isMirrorPod,
  isStaticPod,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";
import { mayDeleteFinally } from "./final-deletion.ts";
import { PatchAnswers } from "./patch-answers.ts";
import { StatusSender, type StatusSenderPorts } from "./sender.ts";
import type { StatusStore } from "./store.ts";

const requestsAtOnce = 8;

/** Port: the API's pods of this node, as the watch has them. */
export interface ApiPods {
  list(): readonly IdentifiedPod[];
  get(namespace: string, name: string): IdentifiedPod | undefined;
  onChange(listener: (change: { readonly type: string; readonly object: IdentifiedPod }) => void): unknown;
  onListed(listener: () => void): unknown;
}

export interface ApiReportPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: StatusSenderPorts["client"];
  readonly apiPods: ApiPods;
  readonly statuses: StatusStore;
  /** The pods that are worked on, and how far they are. */
  readonly workers: {
    pods(): readonly IdentifiedPod[];
    stateOf(uid: PodUid): { readonly step: string } | undefined;
    onFinished(listener: (uid: PodUid) => void): void;
  };
  /** A pod is not wanted any more and nobody works on it, whether or not it ever ran. */
  readonly onLeft: (listener: (uid: PodUid) => void) => unknown;
  /** The pods that are wanted, of all sources, mirrors too. */
  readonly wanted: () => readonly IdentifiedPod[];
  /** Whether the mirror was made for this very version of the static pod. */
  readonly isMirrorOf: (mirror: IdentifiedPod, pod: IdentifiedPod) => boolean;
  readonly onSynced: (durationMs: number) => void;
}

/** Brings statuses to the API, and takes pods away there that have ended on this node. */
export class ApiReports {
  readonly #ports: ApiReportPorts;
  readonly #answers = new PatchAnswers();
  readonly #sender: StatusSender;

  constructor(scope: TaskScope, ports: ApiReportPorts) {
    const { clock, log, statuses, client, apiPods } = ports;
    this.#ports = ports;
    this.#sender = new StatusSender(scope, {
      clock,
      log,
      atOnce: requestsAtOnce,
      apiPod: (uid) => this.#apiPodOf(uid),
      status: (uid) => statuses.get(uid),
      client,
      onSynced: ports.onSynced,
      onSent: (pod) => {
        const { namespace, name, uid } = pod.metadata;
        // An answer that comes after the news of the pod's end would never be let go of.
        if (apiPods.get(namespace, name)?.metadata.uid === uid) this.#answers.set(pod);
      },
      mayDelete: (uid, pod) => mayDeleteFinally(pod, ports.workers.stateOf(uid)?.step),
    });
  }

  /** Sends whenever a status, the API's copy of it, or the pod's state on this node changes. */
  follow(): void {
    const { statuses, workers, apiPods } = this.#ports;
    statuses.onChange((pod) => this.#sender.wake(uidOf(pod)));
    // The API may have heard less than an earlier run of the agent knew, and have shown it before the pod was known here.
    statuses.onConfirm((pod) => this.#sender.wake(uidOf(pod)));
    workers.onFinished((uid) => this.#sender.wake(uid));
    this.#ports.onLeft((uid) => this.#sender.forget(uid));
    apiPods.onChange(({ type, object }) => {
      if (type === "deleted") this.#answers.delete(object.metadata.uid);
      if (isMirrorPod(object)) this.#wakeNamesakes(fullName(object));
      else this.#sender.wake(uidOf(object));
    });
    apiPods.onListed(() => {
      this.#answers.clear();
      for (const pod of apiPods.list()) if (!isMirrorPod(pod)) this.#sender.wake(uidOf(pod));
    });
  }

  /** The API server has the pod's present status, or has nothing to show it by. */
  isReported(uid: PodUid): boolean {
    return this.#sender.isInStep(uid);
  }

  /** The static pods that a mirror of this name may be of. */
  #wakeNamesakes(name: string): void {
    for (const pod of this.#ownPods()) if (isStaticPod(pod) && fullName(pod) === name) this.#sender.wake(uidOf(pod));
  }

  #ownPods(): readonly IdentifiedPod[] {
    return [...this.#ports.wanted(), ...this.#ports.workers.pods()];
  }

  /** The API object that stands for a pod: its own, or the mirror of a static pod. */
  #apiPodOf(uid: PodUid): IdentifiedPod | undefined {
    const apiPods = this.#ports.apiPods.list();
    const own = apiPods.find((pod) => pod.metadata.uid === uid);
    if (own !== undefined) return this.#answers.newest(own);
    // One that nobody wants any more is shown by its mirror until it has stopped.
    const known = this.#ownPods().find((pod) => uidOf(pod) === uid);
    if (known === undefined || !isStaticPod(known)) return undefined;
    const mirror = apiPods.find((pod) => isMirrorPod(pod) && fullName(pod) === fullName(known));
    return mirror !== undefined && this.#ports.isMirrorOf(mirror, known) ? this.#answers.newest(mirror) : undefined;
  }
}
