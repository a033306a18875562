import type { Logger } from "../base/index.ts";
import {
  type CgroupNaming,
  type IdentifiedPod,
  kubepodsCgroup,
  minShares,
  type PodUid,
  podCgroup,
  podUidOfCgroup,
  type QosClass,
  qosCgroup,
  qosClassOf,
  uidOf,
} from "../model/index.ts";
import type { CgroupTree } from "./cgroup-tree.ts";
import type { CgroupValues } from "./cgroup-values.ts";
import { type PodValueSettings, podValues } from "./pod-values.ts";
import { tierValues } from "./tier-values.ts";

const classes: readonly QosClass[] = ["Guaranteed", "Burstable", "BestEffort"];

export interface PodCgroupPorts {
  readonly tree: CgroupTree;
  readonly log: Logger;
  /** Pods that are to run or still do; what the burstable tier weighs depends on them. */
  readonly activePods: () => readonly IdentifiedPod[];
  readonly hasExclusiveCpus: (pod: IdentifiedPod) => boolean;
}

/** The cgroups of pods and of their classes. Without a cgroup per pod (cgroupsPerQOS false) nothing is ever made. */
export class PodCgroups {
  readonly #naming: CgroupNaming;
  readonly #settings: PodValueSettings;
  readonly #ports: PodCgroupPorts;
  /** Pods whose values this process has written; one that was interrupted before may have left them out. */
  readonly #written = new Set<PodUid>();
  readonly #lastTierTexts = new Map<string, string>();

  constructor(naming: CgroupNaming, settings: PodValueSettings, ports: PodCgroupPorts) {
    this.#naming = naming;
    this.#settings = settings;
    this.#ports = ports;
  }

  /** Makes the cgroups that all pods live below. Once, before the first pod. */
  async createTiers(): Promise<void> {
    if (!this.#naming.perQos) return;
    for (const qos of classes) await this.#ports.tree.create(qosCgroup(this.#naming, qos));
    await this.updateTiers();
  }

  /** Gives each class its share for the pods active now. Also wanted when a pod is gone, and now and then. */
  async updateTiers(): Promise<void> {
    if (!this.#naming.perQos) return;
    const { burstable, bestEffort, kubepods } = tierValues(this.#ports.activePods(), this.#settings);
    await this.#writeIfNew(qosCgroup(this.#naming, "Burstable"), burstable);
    await this.#writeIfNew(qosCgroup(this.#naming, "BestEffort"), bestEffort);
    await this.#writeIfNew(kubepodsCgroup(this.#naming), kubepods);
  }

  /** Makes the pod's cgroup if it is missing. Its values are written then, and not at every later look. */
  async ensure(pod: IdentifiedPod): Promise<void> {
    if (!this.#naming.perQos) return;
    const path = this.#pathOf(pod);
    if (this.#written.has(uidOf(pod)) && (await this.#ports.tree.exists(path))) return;
    await this.#tryTo("share out the CPUs among the classes of pods", () => this.updateTiers());
    await this.#ports.tree.create(path);
    // A value that the kernel refuses must not keep the pod from running.
    await this.#tryTo("limit the pod", () => this.writeValues(pod), { path });
    this.#written.add(uidOf(pod));
  }

  /** Writes what the pod's spec allows now: after a resize. */
  async writeValues(pod: IdentifiedPod): Promise<void> {
    if (!this.#naming.perQos) return;
    const values = podValues(pod, this.#settings, this.#ports.hasExclusiveCpus(pod));
    await this.#ports.tree.write(this.#pathOf(pod), values);
  }

  async exists(pod: IdentifiedPod): Promise<boolean> {
    return this.#naming.perQos && (await this.#ports.tree.exists(this.#pathOf(pod)));
  }

  /** Every pod that has a cgroup here. Read this before the desired pods, or a new pod looks like an orphan. */
  async list(): Promise<ReadonlySet<PodUid>> {
    const uids = new Set<PodUid>();
    if (!this.#naming.perQos) return uids;
    for (const qos of classes) {
      for (const element of await this.#ports.tree.children(qosCgroup(this.#naming, qos))) {
        const uid = podUidOfCgroup(this.#naming, element);
        if (uid !== undefined) uids.add(uid as PodUid);
      }
    }
    return uids;
  }

  /** Removes the cgroup of a pod that has no container left, whatever class it had; a process the runtime has forgotten is killed. */
  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    this.#written.delete(uid);
    if (!this.#naming.perQos) return;
    // A pod that is forgotten no longer tells its class.
    for (const qos of classes) await this.#ports.tree.remove(podCgroup(this.#naming, qos, uid), signal);
  }

  /** Leaves a pod that is only waiting for its volumes the least share of the CPUs. */
  async minimiseCpu(uid: PodUid): Promise<void> {
    for (const path of await this.#pathsOf(uid)) await this.#ports.tree.write(path, { cpuShares: minShares });
  }

  #pathOf(pod: IdentifiedPod): string {
    return podCgroup(this.#naming, qosClassOf(pod), pod.metadata.uid);
  }

  async #pathsOf(uid: PodUid): Promise<readonly string[]> {
    if (!this.#naming.perQos) return [];
    const paths: string[] = [];
    for (const qos of classes) {
      const path = podCgroup(this.#naming, qos, uid);
      const siblings = await this.#ports.tree.children(qosCgroup(this.#naming, qos));
      if (siblings.has(path.slice(path.lastIndexOf("/") + 1))) paths.push(path);
    }
    return paths;
  }

  async #writeIfNew(path: string, values: CgroupValues): Promise<void> {
    const text = JSON.stringify(values, (_, value: unknown) => {
      if (typeof value === "bigint") return String(value);
      return value instanceof Map ? [...value].map(String) : value;
    });
    if (this.#lastTierTexts.get(path) === text) return;
    await this.#ports.tree.write(path, values);
    this.#lastTierTexts.set(path, text);
  }

  async #tryTo(what: string, act: () => Promise<void>, fields: Readonly<Record<string, string>> = {}): Promise<void> {
    try {
      await act();
    } catch (error) {
      this.#ports.log.error(`Could not ${what}`, error, fields);
    }
  }
}
