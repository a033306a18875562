import { join } from "node:path";
import type { MachineTopology } from "../../connections/host/index.ts";
import { type Clock, CpuSet, type Logger, messageOf, Topic } from "../../ground/base/index.ts";
import {
  containersOf,
  type IdentifiedPod,
  type PodUid,
  type RejectionReason,
  uidOf,
} from "../../ground/model/index.ts";
import type { CpuAndMemoryPlacement } from "../runtime/index.ts";
import { chooseCpus } from "./cpu/choose-cpus.ts";
import { encodeCpuFile } from "./cpu/cpu-file.ts";
import type { CpuState } from "./cpu/cpu-state.ts";
import { CpuTopology } from "./cpu/cpu-topology.ts";
import { type CpuMetrics, ExclusiveCpus } from "./cpu/exclusive-cpus.ts";
import { restoreCpus } from "./cpu/restore-cpus.ts";
import { FollowingFile, type LastingFiles } from "./following-file.ts";
import { freshMemory } from "./memory/machine-memory.ts";
import { encodeMemoryFile } from "./memory/memory-file.ts";
import type { MemoryState } from "./memory/memory-state.ts";
import { PinnedMemory, type PinnedMemoryPorts } from "./memory/pinned-memory.ts";
import { memoryReserve } from "./memory/reserved-memory.ts";
import { restoreMemory } from "./memory/restore-memory.ts";
import type { PlacementSettings } from "./placement-settings.ts";
import type { FindRunning } from "./running-containers.ts";
import { Alignment, type AlignmentPorts } from "./topology/alignment.ts";
import { AllocationError, type HintProvider } from "./topology/hints.ts";
import { mostAlignedNodes, NumaNodes } from "./topology/numa-nodes.ts";

export interface PlacementPorts {
  readonly rootDir: string;
  readonly files: LastingFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly readTopology: () => Promise<MachineTopology>;
  readonly findRunning: FindRunning;
  /** Whether anything of the pod may still use what it was given. True while that can't be told. */
  readonly holds: (uid: PodUid) => boolean;
  readonly metrics?: PlacementHooks;
}

export interface PlacementHooks {
  readonly cpu: CpuMetrics;
  readonly memory: NonNullable<PinnedMemoryPorts["metrics"]>;
  readonly onSingleNode: NonNullable<AlignmentPorts["onSingleNode"]>;
  /** A pod was looked at for the first time, and refused or not; or it was refused later. */
  readonly onAligned: (outcome: "given" | "refused" | "refused later", began: number) => void;
  readonly monotonic: () => number;
}

/** What came of a pod's wishes. */
export type Giving =
  | { readonly type: "given"; readonly takeBack: () => void }
  | { readonly type: "refused"; readonly reason: RejectionReason; readonly message: string };

/** Placement on trial. */
export interface PlacementTrial extends Pick<Placement, "of" | "hasExclusiveCpus"> {
  give(pod: IdentifiedPod): Giving;
}

/** What there is once the machine is known and what was left is restored. */
interface Placing {
  readonly topology: MachineTopology | undefined;
  readonly numa: NumaNodes;
  readonly cpus:
    | { readonly given: ExclusiveCpus; readonly topology: CpuTopology; readonly reserved: CpuSet }
    | undefined;
  readonly memory: PinnedMemory | undefined;
  readonly alignment: Alignment | undefined;
}

const longestSaveMs = 30_000;

/**
 * Which CPUs and which memory the containers of this node have, decided when a pod comes and kept until nothing of it
 * runs. What was given is on disk before a container is made with it, so whoever dies in between takes nothing along.
 */
export class Placement {
  readonly settings: PlacementSettings;
  /** Pods that the metrics know of. */
  readonly #counted = new Set<PodUid>();
  readonly #ports: PlacementPorts;
  readonly #others: (numa: NumaNodes) => readonly HintProvider[];
  readonly #cpuFile: FollowingFile;
  readonly #memoryFile: FollowingFile;
  readonly #moved = new Topic();
  #placing: Placing | undefined;
  #cpuState: CpuState = { shared: CpuSet.none, exclusive: new Map() };
  #memoryState: MemoryState = { machine: new Map(), blocks: new Map() };

  /** `others` give what lies on NUMA nodes too, such as devices; they come first. */
  constructor(
    settings: PlacementSettings,
    ports: PlacementPorts,
    others: (numa: NumaNodes) => readonly HintProvider[] = () => [],
  ) {
    this.settings = settings;
    this.#ports = ports;
    this.#others = others;
    const { cpu, memory } = settings;
    this.#cpuFile = new FollowingFile(join(ports.rootDir, "cpu_manager_state"), ports.files, () =>
      encodeCpuFile(cpu === undefined ? "none" : "static", this.#cpuState),
    );
    this.#memoryFile = new FollowingFile(join(ports.rootDir, "memory_manager_state"), ports.files, () =>
      encodeMemoryFile(memory === undefined ? "None" : "Static", this.#memoryState),
    );
  }

  /** Called when containers may run elsewhere than before. */
  onMoved(listener: () => void): void {
    this.#moved.on(listener);
  }

  /** Rejects when the configuration does not fit the machine, or somebody who runs would lose what he has. */
  async start(): Promise<void> {
    const { cpu, memory, alignment } = this.settings;
    const isNeeded = cpu !== undefined || memory !== undefined || alignment.policy !== "none";
    const topology = isNeeded ? await this.#ports.readTopology() : undefined;
    const numa = new NumaNodes(topology?.nodes.map(({ id }) => id) ?? []);
    if (topology !== undefined) this.#checkNodes(topology, numa);
    const cpus = await this.#startCpus(topology, numa);
    const pinned = await this.#startMemory(topology, numa);
    // Nothing is given yet that could be lost, so a full disk is no reason not to start.
    this.#saveSoon(this.#cpuFile);
    this.#saveSoon(this.#memoryFile);
    const providers = [
      ...this.#others(numa),
      ...(cpus === undefined ? [] : [cpus.given]),
      ...(pinned === undefined ? [] : [pinned]),
    ];
    this.#placing = {
      topology,
      numa,
      cpus,
      memory: pinned,
      alignment: providers.length === 0 ? undefined : this.#alignment(numa, topology, providers),
    };
  }

  #alignment(numa: NumaNodes, topology: MachineTopology | undefined, providers: readonly HintProvider[]): Alignment {
    const { metrics } = this.#ports;
    return new Alignment(this.settings.alignment, numa, {
      providers,
      distances: distancesOf(topology),
      ...(metrics === undefined ? {} : { onSingleNode: metrics.onSingleNode }),
    });
  }

  #checkNodes({ nodes }: MachineTopology, { ids }: NumaNodes): void {
    const { memory, alignment } = this.settings;
    const { policy, mostNodes, prefersClosest } = alignment;
    if (policy !== "none" && prefersClosest && nodes.some(({ distances }) => distances === undefined)) {
      throw new Error("cannot discover NUMA topology: error getting NUMA distances from cadvisor");
    }
    if (policy !== "none" && ids.length > mostNodes) {
      throw new Error(`unsupported on machines with more than ${mostNodes} NUMA Nodes`);
    }
    if ((policy !== "none" || memory !== undefined) && ids.length > mostAlignedNodes) {
      const why = `all sets of ${ids.length} NUMA nodes would have to be looked at for each container`;
      throw new Error(`cannot align more than ${mostAlignedNodes} NUMA nodes: ${why}; use policies none and None`);
    }
  }

  async #startCpus(topology: MachineTopology | undefined, numa: NumaNodes): Promise<Placing["cpus"]> {
    const { cpu } = this.settings;
    const cpuTopology = cpu && topology && new CpuTopology(topology);
    const reserved = cpu && cpuTopology && reservedCpus(cpu, cpuTopology);
    const settings = cpu && reserved && { options: cpu.options, reserved };
    const { state, mended } = await restoreCpus(await this.#cpuFile.read(), {
      path: join(this.#ports.rootDir, "cpu_manager_state"),
      allCpus: cpuTopology?.cpus ?? CpuSet.none,
      settings,
      findRunning: this.#ports.findRunning,
    });
    this.#tellMended("CPUs", mended);
    this.#cpuState = state;
    if (settings === undefined || cpuTopology === undefined || reserved === undefined) return undefined;
    const onChange = (changed: CpuState): void => {
      this.#cpuState = changed;
      this.#saveSoon(this.#cpuFile);
      this.#moved.tell();
    };
    const metrics = this.#ports.metrics?.cpu;
    const ports = { topology: cpuTopology, numa, onChange, ...(metrics === undefined ? {} : { metrics }) };
    return { given: new ExclusiveCpus(settings, state, ports), topology: cpuTopology, reserved };
  }

  async #startMemory(topology: MachineTopology | undefined, numa: NumaNodes): Promise<PinnedMemory | undefined> {
    const { memory } = this.settings;
    const reserve = memory && memoryReserve(memory.reserved, numa.ids, memory.withheld);
    const fresh = reserve && topology && freshMemory(topology, reserve);
    const { state, mended } = await restoreMemory(await this.#memoryFile.read(), {
      path: join(this.#ports.rootDir, "memory_manager_state"),
      fresh,
      findRunning: this.#ports.findRunning,
    });
    this.#tellMended("memory", mended);
    this.#memoryState = state;
    if (fresh === undefined) return undefined;
    const onChange = (changed: MemoryState): void => {
      this.#memoryState = changed;
      this.#saveSoon(this.#memoryFile);
    };
    const metrics = this.#ports.metrics?.memory;
    return new PinnedMemory(state, { numa, onChange, ...(metrics === undefined ? {} : { metrics }) });
  }

  /** Gives a pod that has come all that it asks for, or nothing. What it has it keeps. */
  give(pod: IdentifiedPod): Giving {
    const { alignment } = this.#ready();
    const { metrics } = this.#ports;
    const began = metrics?.monotonic() ?? 0;
    this.sweep(uidOf(pod));
    const giving = give(alignment, pod);
    const isFirst = this.#isCountedNow(uidOf(pod));
    const isError = giving.type === "refused" && this.settings.alignment.policy !== "none";
    if (isFirst || isError) metrics?.onAligned(isError ? (isFirst ? "refused" : "refused later") : "given", began);
    return giving;
  }

  /** Gives as this one would, from what there is now; nothing of it is kept, counted or told. `others` are on trial too. */
  onTrial(others: (numa: NumaNodes) => readonly HintProvider[]): PlacementTrial {
    const placing = this.#ready();
    const cpus = placing.cpus && { ...placing.cpus, given: placing.cpus.given.onTrial() };
    const memory = placing.memory?.onTrial();
    const providers = [
      ...others(placing.numa),
      ...(cpus === undefined ? [] : [cpus.given]),
      ...(memory ? [memory] : []),
    ];
    const distances = distancesOf(placing.topology);
    const alignment =
      placing.alignment && new Alignment(this.settings.alignment, placing.numa, { providers, distances });
    return {
      give: (pod) => {
        const holds = (uid: PodUid): boolean => uid === uidOf(pod) || this.#ports.holds(uid);
        cpus?.given.retain(holds);
        memory?.retain(holds);
        return give(alignment, pod);
      },
      of: (uid, container) => this.#placeIn({ cpus, memory }, uid, container),
      hasExclusiveCpus: (uid) => this.#liftsQuota && cpus?.given.state.exclusive.has(uid) === true,
    };
  }

  /** True once for each pod: one that waits for a plugin is looked at many times. */
  #isCountedNow(uid: PodUid): boolean {
    if (this.#counted.has(uid)) return false;
    this.#counted.add(uid);
    return true;
  }

  /** The pod runs here, so a node took it: it keeps what it has, and gets what can still be had. It is never refused. */
  takeOver(pod: IdentifiedPod): void {
    const { alignment, cpus, memory } = this.#ready();
    if (alignment === undefined) return;
    for (const { kind, container } of containersOf(pod)) {
      const has =
        cpus?.given.of(uidOf(pod), container.name) !== undefined ||
        (memory?.nodesOf(uidOf(pod), container.name).length ?? 0) > 0;
      // An init container that has nothing has most likely ended.
      if (kind === "ephemeral" || (kind === "init" && !has)) continue;
      try {
        alignment.giveAnywhere(pod, container);
      } catch (error) {
        const { name, namespace } = pod.metadata;
        const fields = { pod: name, namespace, container: container.name, err: messageOf(error) };
        this.#ports.log.warn(
          "A running container can't have what it asks for alone; it shares what others share",
          fields,
        );
      }
    }
  }

  /** The container is about to be made. Resolves, with where it runs, when that would outlive the agent. */
  async placeOf(pod: IdentifiedPod, container: string): Promise<CpuAndMemoryPlacement> {
    const { memory } = this.#ready();
    memory?.starting(pod, container);
    if (this.#hasAnything(uidOf(pod))) await this.#savedSoon();
    return this.of(uidOf(pod), container);
  }

  of(uid: PodUid, container: string): CpuAndMemoryPlacement {
    return this.#placeIn(this.#ready(), uid, container);
  }

  #placeIn({ cpus, memory }: Pick<Placing, "cpus" | "memory">, uid: PodUid, container: string): CpuAndMemoryPlacement {
    const own = cpus?.given.of(uid, container);
    return {
      exclusiveCpus: own !== undefined && this.#liftsQuota,
      cpus: String(own ?? cpus?.given.shared ?? ""),
      memoryNodes: memory?.nodesOf(uid, container).join(",") ?? "",
    };
  }

  /** Whether a container of the pod owns CPUs and needs no quota. */
  hasExclusiveCpus(uid: PodUid): boolean {
    return this.#liftsQuota && this.#cpuState.exclusive.has(uid);
  }

  get #liftsQuota(): boolean {
    return this.settings.cpu?.liftsQuota === true;
  }

  /** What pods had that are gone is for all again; the pod that is asked about has just come. */
  sweep(arriving?: PodUid): void {
    const { cpus, memory } = this.#ready();
    const holds = (uid: PodUid): boolean => uid === arriving || this.#ports.holds(uid);
    cpus?.given.retain(holds);
    memory?.retain(holds);
    for (const uid of this.#counted) if (!holds(uid)) this.#counted.delete(uid);
  }

  /** Whether containers may have CPUs of their own, so that the others have to stay off them. */
  get pinsCpus(): boolean {
    return this.settings.cpu !== undefined;
  }

  /** For those who show it. Undefined before the start. */
  get given(): Placing | undefined {
    return this.#placing;
  }

  /** Resolves when what is given now would outlive the agent: nothing may be used before. */
  async saved(): Promise<void> {
    await Promise.all([this.#cpuFile.save(), this.#memoryFile.save()]);
  }

  /** A disk that hangs must not hold up the end of the pod as well. */
  async #savedSoon(): Promise<void> {
    const isOver = new AbortController();
    const late = this.#ports.clock.sleep(longestSaveMs, isOver.signal).then(() => {
      throw new Error(`what the container was given could not be saved within ${longestSaveMs / 1000} s`);
    });
    try {
      await Promise.race([this.saved(), late]);
    } finally {
      isOver.abort();
    }
  }

  #hasAnything(uid: PodUid): boolean {
    return this.#cpuState.exclusive.has(uid) || this.#memoryState.blocks.has(uid);
  }

  #saveSoon(file: FollowingFile): void {
    file.save().catch((error: unknown) => {
      this.#ports.log.error("Could not save what containers were given; the next change is another try", error);
    });
  }

  #tellMended(what: string, mended: string | undefined): void {
    if (mended === undefined) return;
    this.#ports.log.warn(
      "The saved resources of containers did not fit any more and were corrected; no container lost anything",
      {
        what,
        why: mended,
      },
    );
  }

  #ready(): Placing {
    if (this.#placing === undefined) throw new Error("the CPUs and the memory of this machine are not known yet");
    return this.#placing;
  }
}

function give(alignment: Alignment | undefined, pod: IdentifiedPod): Giving {
  try {
    return { type: "given", takeBack: alignment?.give(pod) ?? (() => undefined) };
  } catch (error) {
    // It waits for somebody, and is looked at again.
    if (!(error instanceof AllocationError)) throw error;
    return { type: "refused", reason: error.reason, message: error.message };
  }
}

function distancesOf(topology: MachineTopology | undefined): readonly (readonly number[])[] {
  return topology?.nodes.map(({ distances }) => distances ?? []) ?? [];
}

/** By number where they were named, else chosen as for a container. */
function reservedCpus(
  { options, reserved, reservedCount }: NonNullable<PlacementSettings["cpu"]>,
  topology: CpuTopology,
): CpuSet {
  if (topology.cpus.isEmpty) throw new Error("could not detect number of cpus");
  if (options.bySocket && topology.sockets.length > topology.nodes.length) {
    const what = "hardware where number of sockets are more than number of NUMA";
    throw new Error(`new static policy error: Align by socket is not compatible with ${what}`);
  }
  if (reservedCount === 0) {
    const rule = "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero";
    throw new Error(`[cpumanager] ${rule}`);
  }
  if (!reserved.isWithin(topology.cpus)) {
    throw new Error(`reserved-cpus: ${reserved} is not a subset of online-cpus: ${topology.cpus}`);
  }
  if (!reserved.isEmpty) return reserved;
  if (reservedCount > topology.cpus.size) {
    const what = `size of ${topology.cpus} did not equal ${reservedCount}`;
    throw new Error(`[cpumanager] unable to reserve the required amount of CPUs (${what})`);
  }
  return chooseCpus(topology, topology.cpus, reservedCount, options);
}
