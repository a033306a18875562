import type { Logger } from "../../../ground/base/index.ts";
import {
  type AllocatedResources,
  type Container,
  type ContainerResources,
  changedResources,
  dueResize,
  type GivenResources,
  type IdentifiedPod,
  jsonEqual,
  mostLimits,
  type PodUid,
  resizableContainers,
  uidOf,
  withAmountsOf,
  withPodLimits,
} from "../../../ground/model/index.ts";
import { KeptResources } from "./kept-resources.ts";

/** What the runtime was last told that containers may use, and what the cgroups of pods as a whole were last given. */
export class Actuations {
  readonly #kept: KeptResources;
  /** What updates that failed would have given, by pod and container: a runtime may have carried them out in part. */
  readonly #tried = new Map<PodUid, Map<string, readonly ContainerResources[]>>();

  constructor(path: string, log: Logger) {
    this.#kept = new KeptResources(path, "what containers were given", log);
  }

  load(): Promise<void> {
    return this.#kept.load();
  }

  /** Undefined: nobody has noted it. */
  of(uid: PodUid, container: string): ContainerResources | undefined {
    const containers = this.#kept.of(uid)?.containers;
    return containers !== undefined && Object.hasOwn(containers, container) ? containers[container] : undefined;
  }

  givenTo(uid: PodUid): GivenResources {
    return {
      to: ({ name }) => this.of(uid, name),
      tried: ({ name }) => this.#tried.get(uid)?.get(name) ?? [],
      toPod: () => this.ofPod(uid),
    };
  }

  /** Whether it is noted that the container has what it is promised now. */
  hasGiven(pod: IdentifiedPod, container: Container): boolean {
    const given = this.givenTo(uidOf(pod));
    return given.to(container) !== undefined && dueResize(pod, container, container, given).changed.length === 0;
  }

  /** The promise that was kept by what the pod has, as far as that is noted; undefined: nothing of it is. */
  asPromise(pod: IdentifiedPod): AllocatedResources | undefined {
    const kept = this.#kept.of(uidOf(pod));
    if (kept === undefined) return undefined;
    const containers: Record<string, ContainerResources> = {};
    for (const { name, resources = {} } of resizableContainers(pod)) {
      const given = this.of(uidOf(pod), name);
      const changed = changedResources(given, resources);
      if (given !== undefined && changed.length > 0) containers[name] = withAmountsOf(resources, given, changed);
    }
    return { pod: kept.pod, containers };
  }

  /** What the pod as a whole was given; undefined: nothing, or nobody has noted it. */
  ofPod(uid: PodUid): ContainerResources | undefined {
    const pod = this.#kept.of(uid)?.pod;
    return pod === "none" ? undefined : pod;
  }

  /** The container is made, or was changed, with these resources. Where the note is lost the change is made again. */
  note(pod: IdentifiedPod, container: string, resources: ContainerResources): void {
    const uid = uidOf(pod);
    const before = this.#kept.of(uid);
    this.#tried.get(uid)?.delete(container);
    const given = this.#asNoted(pod, resources);
    this.#kept.set(uid, { ...before, containers: { ...before?.containers, [container]: given } });
  }

  /** Nobody knows whether the container has these resources now. */
  doubt(pod: IdentifiedPod, container: string, resources: ContainerResources): void {
    const tried = this.#tried.get(uidOf(pod)) ?? new Map<string, readonly ContainerResources[]>();
    const now = withPodLimits(resources, pod.spec.resources);
    // The first of them differs from what is noted, so that one of both differs from any promise: until one succeeds.
    // Of all others it is enough to know how much they may have given.
    const [first = now, most = now] = tried.get(container) ?? [];
    tried.set(container, [first, mostLimits([most, now])]);
    this.#tried.set(uidOf(pod), tried);
  }

  /** As `note`, and resolves when it would outlive the agent. */
  async noteForGood(pod: IdentifiedPod, container: string, resources: ContainerResources): Promise<void> {
    this.note(pod, container, resources);
    await this.#kept.saved();
  }

  /** The pod's own limits count where a container has none. They are only named while the pod was given others. */
  #asNoted(pod: IdentifiedPod, resources: ContainerResources): ContainerResources {
    const given = withPodLimits(resources, pod.spec.resources);
    const assumed = withPodLimits(resources, this.ofPod(uidOf(pod)) ?? pod.spec.resources);
    return jsonEqual(given, assumed) ? resources : given;
  }

  /** What the pod is promised as a whole is believed to be what it was given, where nobody has noted that. */
  believe(pod: IdentifiedPod): void {
    const { resources } = pod.spec;
    if (resources !== undefined && this.ofPod(uidOf(pod)) === undefined) this.notePod(uidOf(pod), resources);
  }

  /** The pod as a whole was given this. */
  notePod(uid: PodUid, resources: ContainerResources): void {
    const before = this.#kept.of(uid);
    if (jsonEqual(before?.pod, resources)) return;
    this.#kept.set(uid, { containers: {}, ...before, pod: resources });
  }

  retain(isKnown: (uid: PodUid) => boolean): void {
    this.#kept.retain(isKnown);
  }

  forget(uid: PodUid): void {
    this.#tried.delete(uid);
    this.#kept.forget(uid);
  }
}
