import type { Node } from "../../../ground/model/index.ts";

/** The Node's `volumesInUse`: volumes that are attached or have to be, and that the cluster must not detach. */
export class VolumesInUse {
  readonly #names = new Set<string>();
  readonly #onChange: () => void;

  /** `onChange`: the cluster waits to hear of it. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  list(): readonly string[] {
    return [...this.#names].sort();
  }

  add(uniqueName: string): void {
    if (this.#names.has(uniqueName)) return;
    this.#names.add(uniqueName);
    this.#onChange();
  }

  /** One that an earlier run of the agent has added, and the cluster has heard of. */
  restore(uniqueName: string): void {
    this.#names.add(uniqueName);
  }

  delete(uniqueName: string): void {
    if (this.#names.delete(uniqueName)) this.#onChange();
  }
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
