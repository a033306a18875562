import type { Logger } from "../../../ground/base/index.ts";
import {
  type AllocatedResources,
  allocate,
  type IdentifiedPod,
  type PodUid,
  uidOf,
  withAllocated,
} from "../../../ground/model/index.ts";
import { KeptResources } from "./kept-resources.ts";

/**
 * What every pod was promised when it came to the node, or by a resize since. A pod is run, and others are admitted
 * beside it, with these resources, whatever its spec asks for meanwhile.
 */
export class Allocations {
  readonly #kept: KeptResources;

  constructor(path: string, log: Logger) {
    this.#kept = new KeptResources(path, "what pods were promised", log);
  }

  load(): Promise<void> {
    return this.#kept.load();
  }

  /** The pod as it is run. One that is new is promised what it asks for. */
  asRun(pod: IdentifiedPod): IdentifiedPod {
    const before = this.#kept.of(uidOf(pod));
    return before === undefined ? pod : withAllocated(pod, allocate(pod, before));
  }

  /** The node has taken the pod: what it asks for now, where nothing was promised before, is its promise. */
  admit(pod: IdentifiedPod): void {
    const before = this.#kept.of(uidOf(pod));
    const allocated = allocate(pod, before);
    if (before !== undefined && isAllOf(allocated, before)) return;
    this.#kept.set(uidOf(pod), allocated);
  }

  /** The pod is promised what it asks for now. */
  resize(pod: IdentifiedPod): void {
    this.#kept.set(uidOf(pod), allocate(pod));
  }

  /** Resolves when what is promised now would outlive the agent: nothing may be given before. */
  saved(): Promise<void> {
    return this.#kept.saved();
  }

  retain(isKnown: (uid: PodUid) => boolean): void {
    this.#kept.retain(isKnown);
  }

  forget(uid: PodUid): void {
    this.#kept.forget(uid);
  }
}

function isAllOf({ pod, containers }: AllocatedResources, before: AllocatedResources): boolean {
  return pod === before.pod && Object.keys(containers).every((name) => before.containers[name] === containers[name]);
}
