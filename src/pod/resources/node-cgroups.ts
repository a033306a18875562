import type { CgroupLayout, findSystemd } from "../../connections/host/index.ts";
import {
  type Clock,
  KeyedWorkers,
  type Logger,
  messageOf,
  type TaskScope,
  untilAborted,
} from "../../ground/base/index.ts";
import type { CgroupNaming, IdentifiedPod, PodUid, RecordNodeEvent } from "../../ground/model/index.ts";
import type { CgroupDriver } from "./cgroup-driver.ts";
import type { CgroupFiles } from "./cgroup-files.ts";
import { CgroupTree } from "./cgroup-tree.ts";
import { cgroupWrites } from "./cgroup-writes.ts";
import { limitPods, limitReserved, type NodeAllocatableSettings } from "./node-allocatable.ts";
import type { PodValueSettings } from "./pod-cgroup-limits.ts";
import { PodCgroups } from "./pod-cgroups.ts";
import { SliceTree } from "./slice-tree.ts";

/** As often as the kubelet. Others may write to our files at any time, and nothing tells us. */
const healEveryMs = 60_000;
/** Between two rounds: a bus that takes connections and drops them would else cause one after the other. */
const restMs = 2_000;

export interface NodeCgroupPorts {
  readonly layout: CgroupLayout;
  readonly files: CgroupFiles;
  readonly findSystemd: typeof findSystemd;
  readonly clock: Clock;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** How cgroups are named; the runtime decides it, so this throws until it has answered. */
  readonly naming: () => CgroupNaming;
  /** Pods whose containers are wanted or still run. */
  readonly activePods: () => readonly IdentifiedPod[];
  /** Every source has said which pods it wants, and those are in `activePods`. */
  readonly arePodsKnown: () => boolean;
  /** Whether the containers of the pod have what they were promised. */
  readonly isSettled: (pod: IdentifiedPod) => boolean;
  /** Whether a container of the pod owns CPUs and needs no quota. */
  readonly hasExclusiveCpus: (pod: IdentifiedPod) => boolean;
  readonly recordNodeEvent: RecordNodeEvent;
  /** Every pod there is any sign of; undefined while that cannot be told. */
  readonly podsInUse: (signal: AbortSignal) => Promise<ReadonlySet<PodUid> | undefined>;
}

export interface ForeseenCgroup {
  readonly path: string;
  /** What is written, by the name of the file. */
  readonly files: Readonly<Record<string, string>>;
}

/** A driver, and what is heard of whoever else drives. */
interface DrivenCgroups {
  readonly tree: CgroupDriver;
  /** Called when all values may have been changed at once. */
  readonly onReload: (listener: () => void) => void;
  /** Makes sure that such changes are heard of. */
  readonly listen: () => Promise<void>;
}

/** What there is once the driver is known. */
interface MadeCgroups extends DrivenCgroups {
  readonly pods: PodCgroups;
  readonly naming: CgroupNaming;
}

/**
 * The cgroups that all pods live below, with what they may use together, and those of each pod. What others change is
 * put right now and then, and whenever `wake` is called.
 */
export class NodeCgroups {
  readonly #settings: PodValueSettings;
  readonly #share: NodeAllocatableSettings;
  readonly #ports: NodeCgroupPorts;
  readonly #healer: KeyedWorkers<"all">;
  #made: MadeCgroups | undefined;
  /** Why all pods together could not be limited when last tried; undefined: they were. */
  #lastProblem: string | undefined;
  #isEnforced = false;

  constructor(
    scope: TaskScope,
    settings: { readonly pod: PodValueSettings; readonly share: NodeAllocatableSettings },
    ports: NodeCgroupPorts,
  ) {
    this.#settings = settings.pod;
    this.#share = settings.share;
    this.#ports = ports;
    this.#healer = new KeyedWorkers(scope, (_, signal) => this.#heal(signal));
  }

  /** Makes what all pods live below. Pods can have their cgroups from then on. */
  async start(scope: TaskScope): Promise<void> {
    const { layout, files, clock, log, activePods, arePodsKnown, isSettled, hasExclusiveCpus } = this.#ports;
    const naming = this.#ports.naming();
    const byHand = new CgroupTree(layout, files, clock);
    const driven = await this.#chooseDriver(naming, byHand, scope);
    const ports = { tree: driven.tree, log, activePods, arePodsKnown, isSettled, hasExclusiveCpus };
    const pods = new PodCgroups(naming, this.#settings, ports);
    this.#made = { ...driven, pods, naming };
    if (!naming.perQos) return;
    try {
      await pods.createTiers();
    } catch (error) {
      // systemd may be busy or out of reach for a while. Pods that run already are to be looked after all the same.
      if (driven.tree === byHand) throw error;
      log.error("Could not create the cgroup of all pods; trying again later", error);
    }
    await this.#limitAllPods();
    try {
      await limitReserved(driven.tree, naming, this.#share, this.#ports.recordNodeEvent);
    } catch (error) {
      if (driven.tree === byHand) throw error;
      log.error("Could not limit the resources reserved for the system; trying again later", error);
    }
  }

  async ensure(pod: IdentifiedPod): Promise<void> {
    await this.#ready().pods.ensure(pod);
  }

  /**
   * The cgroup that the pod would have, and what would be written to its files; undefined: it would have none of its
   * own, or what cgroups are named like is not known yet.
   */
  foresee(pod: IdentifiedPod, exclusiveCpus: boolean): ForeseenCgroup | undefined {
    const foreseen = this.#made?.pods.foresee(pod, exclusiveCpus);
    if (foreseen === undefined) return undefined;
    const writes = cgroupWrites(foreseen.values, this.#ports.layout.version);
    return { path: foreseen.path, files: Object.fromEntries(writes.map(({ file, text }) => [file, text])) };
  }

  /** The cgroups of single pods; there from the start on. */
  get pods(): PodCgroups {
    return this.#ready().pods;
  }

  async remove(uid: PodUid, signal: AbortSignal): Promise<void> {
    await this.#ready().pods.remove(uid, signal);
  }

  /** Puts right what others change, for as long as the signal lets it. */
  async run(signal: AbortSignal): Promise<void> {
    const { naming, onReload } = this.#ready();
    if (!naming.perQos) return;
    onReload(() => this.wake());
    if (this.#ports.arePodsKnown()) this.wake();
    for (;;) {
      await this.#ports.clock.sleep(healEveryMs, signal);
      this.wake();
    }
  }

  /** Something has changed that limits depend on, such as that all pods are known. */
  wake(): void {
    // Before there is a driver there is nothing to put right.
    if (this.#made?.naming.perQos === true) this.#healer.wake("all");
  }

  #ready(): MadeCgroups {
    if (this.#made === undefined) throw new Error("the cgroups that pods live below are not made yet");
    return this.#made;
  }

  async #heal(signal: AbortSignal): Promise<void> {
    const { log, clock, arePodsKnown } = this.#ports;
    const { pods, tree, listen, naming } = this.#ready();
    await listen().catch((error: unknown) => log.warn("Cannot reach systemd; trying again later", { err: error }));
    await pods.heal();
    await this.#limitAllPods();
    await limitReserved(tree, naming, this.#share).catch((error: unknown) =>
      log.warn("Could not limit the resources reserved for the system; trying again later", { err: error }),
    );
    if (arePodsKnown()) await this.#removeOrphanedCgroups(pods, signal);
    await clock.sleep(restMs, signal);
  }

  async #limitAllPods(): Promise<void> {
    const { tree, naming } = this.#ready();
    const { recordNodeEvent } = this.#ports;
    try {
      await limitPods(tree, naming, this.#share);
      const message = "Updated Node Allocatable limit across pods";
      if (!this.#isEnforced) recordNodeEvent({ type: "Normal", reason: "NodeAllocatableEnforced", message });
      this.#isEnforced = true;
      this.#lastProblem = undefined;
    } catch (error) {
      // Pods that already use more than the new limit must not keep the agent from managing them.
      const problem = messageOf(error);
      if (problem !== this.#lastProblem) {
        const message = `Failed to update Node Allocatable Limits ["kubepods"]: ${problem}`;
        recordNodeEvent({ type: "Warning", reason: "FailedNodeAllocatableEnforcement", message });
      }
      this.#isEnforced = false;
      this.#lastProblem = problem;
    }
  }

  async #removeOrphanedCgroups(pods: PodCgroups, signal: AbortSignal): Promise<void> {
    const { podsInUse, log } = this.#ports;
    try {
      await pods.removeOrphanedCgroups(podsInUse, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn("Could not look for cgroups of pods that are gone; trying again later", { err: error });
    }
  }

  /** Slices belong to systemd, where there is one; elsewhere the driver of that name is only another way of naming. */
  async #chooseDriver(naming: CgroupNaming, files: CgroupTree, scope: TaskScope): Promise<DrivenCgroups> {
    const { clock, log, environment, findSystemd } = this.#ports;
    const byHand: DrivenCgroups = { tree: files, onReload: () => {}, listen: async () => {} };
    if (naming.driver !== "systemd" || !naming.perQos) return byHand;
    const manager = await findSystemd(environment["DBUS_SYSTEM_BUS_ADDRESS"], { clock, log: log.named("systemd") });
    if (manager === undefined) {
      log.warn("The cgroup driver is systemd, but systemd is not the init system; slices are created as directories");
      return byHand;
    }
    scope.spawn("connection to systemd", async (signal) => {
      await untilAborted(signal);
      manager.close();
    });
    return {
      tree: new SliceTree(files, manager),
      onReload: (listener) => manager.onReload(listener),
      listen: () => manager.connect(),
    };
  }
}
