import type { Node } from "../../../ground/model/index.ts";
import { StepError } from "../kinds/kind.ts";

export interface VolumesInUsePorts {
  /** The list has changed, and the cluster waits to hear of it. */
  readonly onInUse: () => void;
  /** Where the volume is attached by the node's status, after we have reported it in use; undefined: it is not. */
  readonly attachedAt: (uniqueName: string, signal: AbortSignal) => Promise<Attachment | undefined>;
}

export interface Attachment {
  /** As whoever attached it says; may be empty. */
  readonly devicePath: string;
}

/**
 * The Node's `volumesInUse`: volumes that are attached or have to be, and that the cluster must not detach. One enters
 * the list when a pod wants it (`want`), or when an earlier run of the agent has left it attached (`restore`); it leaves
 * when nothing of it is mounted here any more (`unstaged`).
 */
export class VolumesInUse {
  readonly #names = new Set<string>();
  readonly #ports: VolumesInUsePorts;

  constructor(ports: VolumesInUsePorts) {
    this.#ports = ports;
  }

  list(): readonly string[] {
    return [...this.#names].sort();
  }

  /** The cluster attaches the volume when it sees it in use here; until then there is nothing to do but wait. */
  async want(uniqueName: string, signal: AbortSignal): Promise<Attachment> {
    if (!this.#names.has(uniqueName)) {
      this.#names.add(uniqueName);
      this.#ports.onInUse();
    }
    const attachment = await this.#ports.attachedAt(uniqueName, signal);
    if (attachment !== undefined) return attachment;
    throw new StepError("VerifyControllerAttachedVolume", "Volume not attached according to node status");
  }

  /** One that the cluster has heard of before. */
  restore(uniqueName: string): void {
    this.#names.add(uniqueName);
  }

  unstaged(uniqueName: string): void {
    if (this.#names.delete(uniqueName)) this.#ports.onInUse();
  }
}

/** What volumes wait for in the Node: when it differs, they may try again. */
export function attachmentsOf(node: Node | undefined): string {
  const { volumesAttached = [], volumesInUse = [] } = node?.status ?? {};
  return JSON.stringify([volumesAttached, volumesInUse]);
}

/** One that is attached, but not yet known to be in use here, may be on its way to another node. */
export function attachmentIn(node: Node | undefined, uniqueName: string): Attachment | undefined {
  const { volumesAttached = [], volumesInUse = [] } = node?.status ?? {};
  if (!volumesInUse.includes(uniqueName)) return undefined;
  return volumesAttached.find(({ name }) => name === uniqueName);
}
