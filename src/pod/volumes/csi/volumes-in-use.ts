import type { CSIDriver, Node } from "../../../ground/model/index.ts";
import { StepError } from "../kinds/kind.ts";
import type { CsiPorts } from "./ports.ts";

/**
 * The Node's `volumesInUse`: volumes that are attached or have to be, and that the cluster must not detach. One enters
 * the list when a pod wants it and its driver has volumes attached (`want`), or when an earlier run of the agent has
 * left it attached (`restore`); it leaves when it is no longer staged here (`unstaged`).
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
  async want(uniqueName: string, driver: CSIDriver | undefined, signal: AbortSignal): Promise<void> {
    if (driver?.spec.attachRequired === false) return;
    if (!this.#names.has(uniqueName)) {
      this.#names.add(uniqueName);
      this.#ports.onInUse();
    }
    if (await this.#ports.cluster.isAttached(uniqueName, signal)) return;
    throw new StepError("VerifyControllerAttachedVolume", "Volume not attached according to node status");
  }

  /** One that the cluster has heard of before; `attachment` is "" when it was never attached. */
  restore(uniqueName: string, attachment: string): void {
    if (attachment !== "") this.#names.add(uniqueName);
  }

  unstaged(uniqueName: string): void {
    if (this.#names.delete(uniqueName)) this.#ports.onInUse();
  }
}

interface VolumesInUsePorts extends Pick<CsiPorts, "onInUse"> {
  readonly cluster: Pick<CsiPorts["cluster"], "isAttached">;
}

/** What volumes wait for in the Node: when it differs, they may try again. */
export function attachmentsOf(node: Node | undefined): string {
  const { volumesAttached = [], volumesInUse = [] } = node?.status ?? {};
  return JSON.stringify([volumesAttached, volumesInUse]);
}

/** One that is attached, but not yet known to be in use here, may be on its way to another node. */
export function listsAttached(node: Node | undefined, uniqueName: string): boolean {
  const { volumesAttached = [], volumesInUse = [] } = node?.status ?? {};
  return volumesInUse.includes(uniqueName) && volumesAttached.some(({ name }) => name === uniqueName);
}
