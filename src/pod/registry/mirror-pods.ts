import { isAlreadyExists, isConflict, isNotFound, type KubeClient, resources } from "../../connections/kube/index.ts";
import {
  type Clock,
  isAbort,
  KeyedWorkers,
  type Logger,
  messageOf,
  type TaskScope,
  type Timer,
} from "../../ground/base/index.ts";
import {
  configHashAnnotation,
  configMirrorAnnotation,
  fullName,
  type IdentifiedPod,
  type Node,
  type Pod,
} from "../../ground/model/index.ts";
import { deleteApiPod } from "../status/index.ts";

const retryMs = 5_000;

/**
 * A static pod has no object in the API to carry its status; its mirror is that place. Deleting a mirror never stops
 * the static pod: the mirror comes back.
 */
export class MirrorPods {
  readonly #ports: MirrorPodPorts;
  readonly #workers: KeyedWorkers<string>;
  /** The next look at each mirror that is not right yet: one, however many had it looked at meanwhile. */
  readonly #later = new Map<string, Timer>();

  constructor(scope: TaskScope, ports: MirrorPodPorts) {
    this.#ports = ports;
    this.#workers = new KeyedWorkers(scope, (name, signal) => this.#sync(name, signal));
  }

  /** The static pod or the mirror of this full name came, changed or went. */
  wake(podFullName: string): void {
    this.#workers.wake(podFullName);
  }

  async #sync(name: string, signal: AbortSignal): Promise<void> {
    this.#later.get(name)?.cancel();
    this.#later.delete(name);
    try {
      await this.#reconcile(name, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#ports.log.warn("Could not update a mirror pod; trying again", { pod: name, err: messageOf(error) });
      this.#lookLater(name);
    }
  }

  #lookLater(name: string): void {
    this.#later.set(
      name,
      this.#ports.clock.after(retryMs, () => this.#workers.wake(name)),
    );
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<void> {
    const wanted = this.#ports.staticPod(name);
    const mirror = this.#ports.mirrorPod(name);
    const isRight = mirror !== undefined && wanted !== undefined && isFaithful(mirror, wanted);
    // While an older version is still being stopped, its mirror is where people look, under the uid they know.
    if (isRight || this.#ports.isTerminating(name, wanted)) return;
    if (mirror !== undefined && wanted === undefined && !this.#ports.isSourceKnown(mirror)) {
      // Its pod may be among those that are not known yet.
      this.#lookLater(name);
      return;
    }
    if (mirror !== undefined) await this.#delete(mirror, signal);
    if (wanted !== undefined) await this.#create(wanted, signal);
  }

  async #create(wanted: IdentifiedPod, signal: AbortSignal): Promise<void> {
    const node = this.#ports.node();
    // Without its node as owner nobody would ever collect the mirror; it is made when the node is known.
    if (node?.metadata?.uid === undefined || node.metadata.deletionTimestamp !== undefined) return;
    const mirror = mirrorOf(wanted, node);
    try {
      await this.#ports.client.create(resources.pods, { namespace: wanted.metadata.namespace }, mirror, signal);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }

  async #delete(mirror: IdentifiedPod, signal: AbortSignal): Promise<void> {
    try {
      await deleteApiPod(this.#ports.client, mirror, signal);
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}

export interface MirrorPodPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly staticPod: (fullName: string) => IdentifiedPod | undefined;
  /** Whether a static pod of this name, other than the wanted one, has not ended yet. */
  readonly isTerminating: (fullName: string, wanted: IdentifiedPod | undefined) => boolean;
  readonly mirrorPod: (fullName: string) => IdentifiedPod | undefined;
  /** Whether the source that the mirror's pod came from has sent its pods. */
  readonly isSourceKnown: (mirror: IdentifiedPod) => boolean;
  readonly node: () => Node | undefined;
  readonly client: Pick<KubeClient, "create" | "delete">;
}

function isFaithful(mirror: IdentifiedPod, wanted: IdentifiedPod): boolean {
  return (
    mirror.metadata.deletionTimestamp === undefined &&
    fullName(mirror) === fullName(wanted) &&
    isMirrorOf(mirror, wanted)
  );
}

/** Whether the mirror was made for this very version of the static pod. */
export function isMirrorOf(mirror: IdentifiedPod, pod: IdentifiedPod): boolean {
  return mirror.metadata.annotations?.[configMirrorAnnotation] === pod.metadata.annotations?.[configHashAnnotation];
}

function mirrorOf(wanted: IdentifiedPod, node: Node): Pod {
  const { name, namespace, labels, annotations } = wanted.metadata;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      annotations: { ...annotations, [configMirrorAnnotation]: annotations?.[configHashAnnotation] ?? "" },
      ownerReferences: [
        {
          apiVersion: "v1",
          kind: "Node",
          name: node.metadata?.name ?? "",
          uid: node.metadata?.uid ?? "",
          controller: true,
        },
      ],
    },
    spec: wanted.spec,
  };
}
