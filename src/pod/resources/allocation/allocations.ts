import type { Logger } from "../../../ground/base/index.ts";
import {
  type AllocatedResources,
  allocate,
  type IdentifiedPod,
  type PodUid,
  uidOf,
  withAllocated,
} from "../../../ground/model/index.ts";
import type { Actuations } from "./actuations.ts";
import { KeptResources } from "./kept-resources.ts";

/**
 * What every pod was promised when it came to the node, or by a resize since. A pod is run, and others are admitted
 * beside it, with these resources, whatever its spec asks for meanwhile.
 */
export class Allocations {
  readonly #kept: KeptResources;
  readonly #actuations: Pick<Actuations, "asPromise">;
  /** Whoever decides about one pod asks for all others, too: they stay the same object while their promise does. */
  readonly #asRun = new WeakMap<IdentifiedPod, { readonly promise: AllocatedResources; readonly pod: IdentifiedPod }>();

  constructor(path: string, actuations: Pick<Actuations, "asPromise">, log: Logger) {
    this.#kept = new KeptResources(path, "what pods were promised", log);
    this.#actuations = actuations;
  }

  load(): Promise<void> {
    return this.#kept.load();
  }

  /** The pod as it is run. One that is new is promised what it asks for. */
  asRun(pod: IdentifiedPod): IdentifiedPod {
    const promise = this.#before(pod);
    if (promise === undefined) return pod;
    const known = this.#asRun.get(pod);
    if (known?.promise === promise) return known.pod;
    const run = withAllocated(pod, allocate(pod, promise));
    this.#asRun.set(pod, { promise, pod: run });
    return run;
  }

  /** The node has taken the pod: what it asks for now, where nothing was promised before, is its promise. */
  admit(pod: IdentifiedPod): void {
    const before = this.#kept.of(uidOf(pod));
    const allocated = allocate(pod, before ?? this.#before(pod));
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

  /** Where the promise is lost it was what was given: what the spec asks for beyond that may be waiting for room. */
  #before(pod: IdentifiedPod): AllocatedResources | undefined {
    return this.#kept.of(uidOf(pod)) ?? this.#actuations.asPromise(pod);
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
