import { type Logger, messageOf, SerialByKey } from "../../ground/base/index.ts";
import {
  type CgroupNaming,
  type IdentifiedPod,
  minShares,
  type ObservedResources,
  type PodUid,
  podCgroup,
  podUidOfCgroup,
  type QosClass,
  qosCgroup,
  qosClassOf,
  type ResizableResource,
  resizableResources,
  uidOf,
} from "../../ground/model/index.ts";
import type { CgroupDriver, HealMode, LeftProcesses } from "./cgroup-driver.ts";
import { CgroupValueError } from "./cgroup-tree.ts";
import type { CgroupValues, CpuQuota } from "./cgroup-values.ts";
import { type PodValueSettings, podValues } from "./pod-cgroup-limits.ts";
import { tierValues } from "./qos-cgroup-limits.ts";

/** The class above the others comes first. */
const classes: readonly QosClass[] = ["Guaranteed", "Burstable", "BestEffort"];

export interface PodCgroupPorts {
  readonly tree: CgroupDriver;
  readonly log: Logger;
  /** Pods that are to run or still do; what the burstable tier weighs depends on them. */
  readonly activePods: () => readonly IdentifiedPod[];
  /** Whether those are all: every source has said what it wants. */
  readonly arePodsKnown: () => boolean;
  readonly hasExclusiveCpus: (pod: IdentifiedPod) => boolean;
  /** Whether the containers of the pod have what they were promised. */
  readonly isSettled: (pod: IdentifiedPod) => boolean;
}

/** A pod's cgroup as this process has made, changed or found it. */
interface KeptPod {
  readonly path: string;
  /** As last put into effect: a later version of the spec has no say before it has been. */
  readonly values: CgroupValues;
  /** Whether the kernel has no more than that; an earlier agent may have given more, which containers may still use. */
  readonly isExact: boolean;
}

/** The cgroups of pods and of their classes. Without a cgroup per pod (cgroupsPerQOS false) nothing is ever made. */
export class PodCgroups {
  readonly #naming: CgroupNaming;
  readonly #settings: PodValueSettings;
  readonly #ports: PodCgroupPorts;
  readonly #kept = new Map<PodUid, KeptPod>();
  /** Pods that would not let go of what they have no promise of any more. */
  readonly #behind = new Set<PodUid>();
  /** So that nobody heals what somebody else is removing. */
  readonly #turns = new SerialByKey<PodUid>();
  #sharing: Promise<void> = Promise.resolve();
  #nextSharing: Promise<void> | undefined;
  /** What has been said of failures that may come again every minute, by what they are about. */
  readonly #complaints = new Map<string, string>();
  /** Cgroups that belonged to no pod when last looked at. */
  #suspects: ReadonlySet<PodUid> = new Set();

  constructor(naming: CgroupNaming, settings: PodValueSettings, ports: PodCgroupPorts) {
    this.#naming = naming;
    this.#settings = settings;
    this.#ports = ports;
  }

  /** Makes the cgroups that all pods live below, where they are missing. */
  async createTiers(): Promise<void> {
    if (!this.#naming.perQos) return;
    const { tree } = this.#ports;
    for (const { path, values } of this.#tiers([])) {
      // What is only made now has no pods yet; what was there keeps its share until the pods are known.
      if ((await tree.make(path, values)) === "made") await tree.write(path, values);
    }
  }

  /**
   * Gives each class its share for the pods active now: wanted whenever a pod comes or goes. While not all pods are
   * known nothing is lowered, or pods that have run all along would be starved until they are.
   */
  updateTiers(): Promise<void> {
    if (!this.#naming.perQos) return Promise.resolve();
    // One after another, counting the pods anew each time: an earlier count must never be written over a later one.
    this.#nextSharing ??= this.#sharing
      .catch(() => undefined)
      .then(() => {
        this.#nextSharing = undefined;
        this.#sharing = this.#shareOut();
        return this.#sharing;
      });
    return this.#nextSharing;
  }

  /** Makes the pod's cgroup if it is missing. Its values are written then, and not at every later look. */
  async ensure(pod: IdentifiedPod): Promise<void> {
    if (!this.#naming.perQos) return;
    await this.#turns.run(uidOf(pod), async () => {
      const { tree } = this.#ports;
      const path = this.#pathOf(pod);
      if (this.#kept.has(uidOf(pod)) && (await tree.presence(path)) === "complete") return;
      const values = this.#valuesOf(pod);
      const [, outcome] = await Promise.all([this.#updateTiersOrComplain(), tree.make(path, values)]);
      let isExact = true;
      try {
        if (outcome === "made") await tree.write(path, values);
        else isExact = await this.#allow(path, values, this.#modeFor(pod));
      } catch (error) {
        // A value that the kernel refuses must not keep the pod from running; it is tried again whenever pods are healed.
        if (!(error instanceof CgroupValueError)) throw error;
        this.#complain("limit the pod", path, error);
      }
      this.#kept.set(uidOf(pod), { path, values, isExact });
    });
  }

  /** Gives the pod's cgroup what its spec allows now where that is more: before its containers get it. */
  async raise(pod: IdentifiedPod, resources: readonly ResizableResource[]): Promise<void> {
    if (!this.#naming.perQos) return;
    // A share that is raised is worth nothing below a limit that is not.
    const [limit, share] = this.#valuesFor(pod, resources);
    await this.#turns.run(uidOf(pod), async () => {
      const path = this.#pathOf(pod);
      for (const values of [limit, share]) await this.#ports.tree.heal(path, values, "raise");
      // Whoever heals the pod before its containers have it must not take it back.
      const { values, isExact } = this.#keptOf(pod);
      this.#kept.set(uidOf(pod), { path, values: largerValues(values, { ...limit, ...share }), isExact });
    });
    if (this.#weighsOnTiers(pod, resources)) await this.#updateTiersOrComplain();
  }

  /** Makes it what the spec allows: when its containers have no more than that. */
  async lower(pod: IdentifiedPod, resources: readonly ResizableResource[]): Promise<void> {
    if (!this.#naming.perQos) return;
    const [limit, share] = this.#valuesFor(pod, resources);
    await this.#turns.run(uidOf(pod), async () => {
      const path = this.#pathOf(pod);
      await this.#ports.tree.heal(path, share, "exact");
      // What it holds may be more by now, or be what a container has left that is not there to be asked.
      const isLowered = await this.#allow(path, limit, "exact");
      const { values, isExact } = this.#keptOf(pod);
      const { memoryLimitBytes, ...others } = { ...values, ...limit, ...share };
      const left = isLowered ? memoryLimitBytes : largerLimit(values.memoryLimitBytes, memoryLimitBytes);
      if (!isLowered) this.#behind.add(uidOf(pod));
      this.#kept.set(uidOf(pod), { path, values: { ...others, ...definedOnly({ memoryLimitBytes: left }) }, isExact });
    });
    if (this.#weighsOnTiers(pod, resources)) await this.#updateTiersOrComplain();
  }

  /**
   * Follows what the pod was promised where containers got it by starting anew: what they may need is there before they
   * start, and what nobody may use any more goes when all have what they were promised.
   */
  async follow(pod: IdentifiedPod): Promise<void> {
    const kept = this.#kept.get(uidOf(pod));
    if (!this.#naming.perQos || kept === undefined) return;
    const wanted = Object.assign({}, ...this.#valuesFor(pod, resizableResources)) as CgroupValues;
    const mode = this.#modeFor(pod);
    if (isPartOf(wanted, kept.values) && (kept.isExact || mode === "raise")) return;
    await this.#turns.run(uidOf(pod), async () => {
      // What it holds, or the kernel refuses, must keep nothing of it from starting; it is tried again.
      const isExact = await this.#orComplain("limit the pod", kept.path, () => this.#allow(kept.path, wanted, mode));
      if (mode === "raise" || isExact === true) this.#behind.delete(uidOf(pod));
      else this.#behind.add(uidOf(pod));
      const values = isExact === true ? { ...kept.values, ...wanted } : largerValues(kept.values, wanted);
      this.#kept.set(uidOf(pod), { ...kept, values, isExact: isExact === true || (mode === "raise" && kept.isExact) });
    });
    await this.#updateTiersOrComplain();
  }

  /** Whether the kernel has just that then: no limit goes below memory that can't be had back without killing somebody. */
  async #allow(path: string, values: CgroupValues, mode: HealMode): Promise<boolean> {
    const { tree } = this.#ports;
    const { memoryLimitBytes, ...others } = values;
    const held = mode === "raise" || memoryLimitBytes === undefined ? 0n : await tree.memoryHeld(path);
    if (memoryLimitBytes === undefined || held < memoryLimitBytes) {
      await tree.heal(path, values, mode);
      this.#complaints.delete(`${path} memory`);
      return mode === "exact";
    }
    await tree.heal(path, others, "exact");
    await tree.heal(path, { memoryLimitBytes }, "raise");
    const problem = new Error(`${held} bytes are in use, the limit would be ${memoryLimitBytes}`);
    this.#complain("lower the memory limit of the pod", `${path} memory`, problem);
    return false;
  }

  /** The cgroup that the pod would have, and what would be allowed it; undefined: none of its own. */
  foresee(pod: IdentifiedPod, exclusiveCpus: boolean): { path: string; values: CgroupValues } | undefined {
    if (!this.#naming.perQos) return undefined;
    return { path: this.#pathOf(pod), values: podValues(pod, this.#settings, exclusiveCpus) };
  }

  /** What the pod as a whole may use, in bytes; undefined: as much as there is. */
  memoryLimit(pod: IdentifiedPod): bigint | undefined {
    return this.#naming.perQos ? this.#valuesOf(pod).memoryLimitBytes : undefined;
  }

  async memoryUsage(pod: IdentifiedPod): Promise<bigint> {
    return this.#naming.perQos ? await this.#ports.tree.memoryUsage(this.#pathOf(pod)) : 0n;
  }

  /** What the kernel has for the pod as a whole; undefined: the pod has no cgroup of its own. */
  async resources(pod: IdentifiedPod): Promise<ObservedResources | undefined> {
    if (!this.#naming.perQos) return undefined;
    return await this.#ports.tree.resources(this.#pathOf(pod), this.#valuesOf(pod).cpuShares ?? minShares);
  }

  /** Puts right what somebody else has changed, removed or never written. A failure is logged, and keeps back nothing. */
  async heal(): Promise<void> {
    if (!this.#naming.perQos) return;
    await this.#orComplain("make the cgroups of all pods", "all pods", () => this.#healTiers());
    await this.#updateTiersOrComplain();
    for (const pod of this.#ports.activePods()) {
      await this.#orComplain("heal the limits of the pod", this.#pathOf(pod), () => this.#healPod(pod));
      if (this.#behind.has(uidOf(pod))) await this.follow(pod);
    }
  }

  /**
   * Removes cgroups that belong to no pod: an agent that was killed may have left them. Only what was so at the last
   * look too is removed, so that nobody's new pod is mistaken for one, and nothing in which a process runs: it may be
   * another agent's.
   */
  async removeOrphanedCgroups(
    podsInUse: (signal: AbortSignal) => Promise<ReadonlySet<PodUid> | undefined>,
    signal: AbortSignal,
  ): Promise<void> {
    const active = new Set(this.#ports.activePods().map((pod) => this.#listedAs(uidOf(pod))));
    const strangers = [...(await this.list())].filter((uid) => !active.has(uid));
    const known = strangers.length === 0 ? undefined : await podsInUse(signal);
    const owners = new Set([...(known ?? [])].map((uid) => this.#listedAs(uid)));
    const orphans = known === undefined ? [] : strangers.filter((uid) => !owners.has(uid));
    const suspects = this.#suspects;
    this.#suspects = new Set(orphans);
    for (const uid of orphans) {
      signal.throwIfAborted();
      if (!suspects.has(uid)) continue;
      await this.#orComplain("remove the cgroup of a pod that is gone", uid, () => this.#remove(uid, "leave", signal));
    }
  }

  async exists(pod: IdentifiedPod): Promise<boolean> {
    return this.#naming.perQos && (await this.#ports.tree.presence(this.#pathOf(pod))) === "complete";
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
    await this.#remove(uid, "kill", signal);
  }

  async #remove(uid: PodUid, processes: LeftProcesses, signal: AbortSignal): Promise<void> {
    if (!this.#naming.perQos) return;
    await this.#turns.run(uid, async () => {
      const kept = this.#kept.get(uid);
      // A pod of this uid has come back since it was found to be nobody's.
      if (kept !== undefined && processes === "leave") return;
      // A pod that is forgotten no longer tells its class.
      const paths = kept === undefined ? classes.map((qos) => podCgroup(this.#naming, qos, uid)) : [kept.path];
      for (const path of paths) {
        await this.#ports.tree.remove(path, processes, signal);
        this.#complaints.delete(path);
        this.#complaints.delete(`${path} memory`);
      }
      this.#behind.delete(uid);
      this.#kept.delete(uid);
    });
    await this.#updateTiersOrComplain();
  }

  /** Leaves a pod that is only waiting for its volumes the least share of the CPUs. */
  async minimiseCpu(uid: PodUid): Promise<void> {
    for (const path of await this.#pathsOf(uid)) await this.#ports.tree.write(path, { cpuShares: minShares });
  }

  /** What each class is to have for these pods. */
  #tiers(pods: readonly IdentifiedPod[]): readonly Pick<KeptPod, "path" | "values">[] {
    const { kubepods, burstable, bestEffort } = tierValues(pods, this.#settings);
    const values = { Guaranteed: kubepods, Burstable: burstable, BestEffort: bestEffort };
    return classes.map((qos) => ({ path: qosCgroup(this.#naming, qos), values: values[qos] }));
  }

  async #shareOut(): Promise<void> {
    const { tree, arePodsKnown, activePods } = this.#ports;
    const mode = arePodsKnown() ? "exact" : "raise";
    const failures: unknown[] = [];
    for (const { path, values } of this.#tiers(activePods())) {
      try {
        await tree.heal(path, await this.#withoutKills(path, values), mode);
      } catch (error) {
        // What one class is refused must not cost the others their share.
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  }

  /**
   * A class may use more than is left for it when a pod of a better one comes. It keeps what it uses and can't give
   * back, and grows no further: version 2 of cgroups would kill its pods for less, and version 1 refuse it.
   */
  async #withoutKills(path: string, values: CgroupValues): Promise<CgroupValues> {
    const { memoryLimitBytes, ...others } = values;
    if (this.#settings.memoryReserve === undefined || memoryLimitBytes === undefined) return values;
    // Pods that are not known yet may be those it is kept for.
    if (!this.#ports.arePodsKnown()) return others;
    const held = await this.#ports.tree.memoryHeld(path);
    return held > memoryLimitBytes ? { ...values, memoryLimitBytes: held } : values;
  }

  async #updateTiersOrComplain(): Promise<void> {
    await this.#orComplain("share out the CPUs among the classes of pods", "classes of pods", () => this.updateTiers());
  }

  async #healTiers(): Promise<void> {
    const { tree } = this.#ports;
    for (const qos of classes) {
      if ((await tree.presence(qosCgroup(this.#naming, qos))) !== "complete") return await this.createTiers();
    }
  }

  async #healPod(pod: IdentifiedPod): Promise<void> {
    const { tree } = this.#ports;
    await this.#turns.run(uidOf(pod), async () => {
      const kept = this.#keptOf(pod);
      const presence = await tree.presence(kept.path);
      // It has not come that far yet, or is gone by now.
      if (presence === "missing" && !this.#kept.has(uidOf(pod))) return;
      if (presence !== "complete") await tree.make(kept.path, kept.values);
      if (kept.isExact) await tree.heal(kept.path, kept.values, this.#modeFor(pod));
      const isExact = kept.isExact || (await this.#allow(kept.path, kept.values, this.#modeFor(pod)));
      this.#kept.set(uidOf(pod), { ...kept, isExact });
    });
  }

  #keptOf(pod: IdentifiedPod): KeptPod {
    const found = { path: this.#pathOf(pod), values: this.#valuesOf(pod), isExact: false };
    return this.#kept.get(uidOf(pod)) ?? found;
  }

  /** The uid as `list` tells it: the name of a slice does not tell "_" from "-", and a manifest may ask for either. */
  #listedAs(uid: PodUid): PodUid {
    const path = podCgroup(this.#naming, "Guaranteed", uid);
    return (podUidOfCgroup(this.#naming, path.slice(path.lastIndexOf("/") + 1)) ?? uid) as PodUid;
  }

  #valuesOf(pod: IdentifiedPod): CgroupValues {
    return podValues(pod, this.#settings, this.#ports.hasExclusiveCpus(pod));
  }

  /** Whether what the classes of pods have depends on one of these resources of the pod. */
  #weighsOnTiers(pod: IdentifiedPod, resources: readonly ResizableResource[]): boolean {
    if (resources.includes("memory") && this.#settings.memoryReserve !== undefined) return true;
    return this.#settings.memoryQos || (resources.includes("cpu") && qosClassOf(pod) === "Burstable");
  }

  /** The limits and the shares of these resources. */
  #valuesFor(
    pod: IdentifiedPod,
    resources: readonly ResizableResource[],
  ): readonly [limits: CgroupValues, shares: CgroupValues] {
    const { cpuQuota, cpuShares, memoryLimitBytes, memoryMinBytes } = this.#valuesOf(pod);
    const [cpu, memory] = [resources.includes("cpu"), resources.includes("memory")];
    return [
      definedOnly({ ...(cpu ? { cpuQuota } : {}), ...(memory ? { memoryLimitBytes } : {}) }),
      definedOnly({ ...(cpu ? { cpuShares } : {}), ...(memory ? { memoryMinBytes } : {}) }),
    ];
  }

  /** Until its containers have what they were promised, nothing is taken from the pod that they may still use. */
  #modeFor(pod: IdentifiedPod): HealMode {
    return this.#ports.isSettled(pod) ? "exact" : "raise";
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

  async #orComplain<Result>(what: string, subject: string, act: () => Promise<Result>): Promise<Result | undefined> {
    try {
      const result = await act();
      this.#complaints.delete(subject);
      return result;
    } catch (error) {
      this.#complain(what, subject, error);
      return undefined;
    }
  }

  /** Said once for as long as it stays the same. */
  #complain(what: string, subject: string, error: unknown): void {
    const complaint = `${what}: ${messageOf(error)}`;
    if (this.#complaints.get(subject) === complaint) return;
    this.#complaints.set(subject, complaint);
    this.#ports.log.error(`Could not ${what}`, error, { subject });
  }
}

/** Of CPUs and memory what is more; of all else what there was. */
function largerValues(before: CgroupValues, wanted: CgroupValues): CgroupValues {
  const { memoryLimitBytes, cpuQuota, ...others } = wanted;
  return {
    ...others,
    ...before,
    ...definedOnly({
      cpuShares: larger(before.cpuShares, wanted.cpuShares),
      memoryLimitBytes: largerLimit(before.memoryLimitBytes, memoryLimitBytes),
      memoryMinBytes: larger(before.memoryMinBytes, wanted.memoryMinBytes),
      cpuQuota: largerQuota(before.cpuQuota, cpuQuota),
    }),
  };
}

/** A pod that had no limit keeps having none, which is more than any. */
function largerLimit(before: bigint | undefined, wanted: bigint | undefined): bigint | undefined {
  return before === undefined ? undefined : larger(before, wanted);
}

function larger<Amount extends number | bigint>(a: Amount | undefined, b: Amount | undefined): Amount | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a > b ? a : b;
}

function largerQuota(before: CpuQuota | undefined, wanted: CpuQuota | undefined): CpuQuota | undefined {
  if (before === undefined || wanted === undefined) return before;
  const isUnlimited = before.quotaUs < 0 || wanted.quotaUs < 0;
  return { ...wanted, quotaUs: isUnlimited ? -1 : Math.max(before.quotaUs, wanted.quotaUs) };
}

function isPartOf(part: CgroupValues, whole: CgroupValues): boolean {
  return (
    part.cpuShares === whole.cpuShares &&
    part.memoryLimitBytes === whole.memoryLimitBytes &&
    part.memoryMinBytes === whole.memoryMinBytes &&
    part.cpuQuota?.quotaUs === whole.cpuQuota?.quotaUs
  );
}

function definedOnly(values: { readonly [Key in keyof CgroupValues]?: CgroupValues[Key] | undefined }): CgroupValues {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}
