import type { CgroupReader } from "../../connections/host/index.ts";
import type { Clock, LedgerView, Logger } from "../../ground/base/index.ts";
import type { AgentConfig } from "../../ground/config/index.ts";
import type {
  CgroupNaming,
  Node,
  Pod,
  PodUid,
  PodViewChange,
  Probe,
  ResourceAmounts,
} from "../../ground/model/index.ts";
import type { AgentView, EventView, MachineView, NodeOverview, ProbeView, StorageView } from "./wire.ts";

/** What the dashboard is fed from. Everything is the present truth; nothing is asked before somebody looks. */
export interface DashboardPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly facts: NodeFactsShown;
  readonly pods: PodsShown;
  readonly health: () => readonly HealthShown[];
  readonly node: () => NodeShown;
  readonly cgroups: CgroupReader;
  /** Undefined while the agent does not know its runtime. */
  readonly naming: () => CgroupNaming | undefined;
  /** Size and use of the disk that the agent keeps pods on. */
  readonly disk: () => Promise<{ readonly capacityBytes: bigint; readonly usedBytes: bigint }>;
  /** The latest last. */
  readonly events: () => readonly EventView[];
  readonly images: ImagesShown;
  readonly storage: StorageShown;
  readonly machine: MachineShown;
  readonly config: AgentConfig;
  readonly process: ProcessShown;
  /** Runs `nodelet doctor --json` on this node; resolves with what it printed. */
  readonly runDoctor: (signal: AbortSignal) => Promise<string>;
  /** Gives what a container has written to the sink. Rejects when there is no log. */
  readonly copyLog: (request: LogShown, sink: (bytes: Buffer) => Promise<void>, signal: AbortSignal) => Promise<void>;
}

export interface LogShown {
  readonly pod: Pod;
  readonly container: string;
  readonly previous: boolean;
  readonly follow: boolean;
  /** Undefined: from the oldest line there is. */
  readonly tailLines: number | undefined;
  /** Each line with its time before it. */
  readonly hasTimes: boolean;
}

/** What does not change while the agent runs. */
export type NodeFactsShown = Pick<
  NodeOverview,
  | "name"
  | "version"
  | "kubeletVersion"
  | "kernel"
  | "os"
  | "architecture"
  | "cgroupVersion"
  | "cpus"
  | "memoryBytes"
  | "startedAt"
  | "bootedAt"
>;

export interface NodeShown {
  /** As the API server has it; undefined where there is none, or it has not been heard yet. */
  readonly node: Node | undefined;
  readonly runtime: { readonly name: string; readonly version: string } | undefined;
  readonly runtimeProblem: string | undefined;
  readonly networkProblem: string | undefined;
  /** Conditions of want that the node is in. */
  readonly pressure: readonly string[];
  readonly allocatable: ResourceAmounts;
  readonly pidLimit: number;
  /** Undefined: the agent has no API server. Times are of the monotonic clock. */
  readonly api:
    | {
        readonly hasSynced: boolean;
        readonly heardAt: number | undefined;
        readonly problem: string | undefined;
        readonly nextTryAt: number | undefined;
        readonly lease: { readonly at: number | undefined; readonly problem: string | undefined } | undefined;
      }
    | undefined;
}

/** What a part of the agent says of itself. */
export interface HealthShown {
  readonly name: string;
  readonly health:
    | { readonly state: "ok"; readonly note?: string }
    | { readonly state: "waiting" | "failed"; readonly reason: string };
  readonly sinceMs: number;
  readonly provenMs: number | undefined;
}

export interface PodsShown {
  all(): readonly Pod[];
  watch(listener: (change: PodViewChange) => void): () => void;
  ledger(uid: PodUid): LedgerView | undefined;
  /** Told whose ledger has changed. */
  watchLedgers(listener: (uid: PodUid) => void): () => void;
  probes(uid: PodUid): readonly ProbeShown[];
  volumes(uid: PodUid): readonly VolumeShown[];
  measureVolumes(uid: PodUid, signal: AbortSignal): Promise<readonly VolumeMeasured[]>;
}

/** A probe of a container, and what its last attempts found. */
export interface ProbeShown {
  readonly container: string;
  readonly plan: { readonly kind: ProbeView["kind"]; readonly probe: Probe; readonly periodMs: number };
  readonly result: string | undefined;
  readonly nextAt: number | undefined;
  readonly attempts: ProbeView["outcomes"];
}

export interface VolumeShown {
  readonly name: string;
  /** Undefined until it is known what the volume is. */
  readonly plugin: string | undefined;
  readonly step: "waiting" | "mounting" | "failed" | "mounted";
  readonly detail: string;
  readonly since: number | undefined;
  readonly nextTryAt: number | undefined;
  readonly persistentVolume: string | undefined;
  /** Of the config map or secret whose content is on disk. */
  readonly version: string | undefined;
  readonly directory: string | undefined;
}

export interface VolumeMeasured {
  readonly name: string;
  readonly usage: { readonly usedBytes: bigint | number; readonly capacityBytes: bigint | number };
}

export interface ImagesShown {
  /** Without progress where the runtime can't tell. */
  pulls(signal: AbortSignal): Promise<
    readonly {
      readonly image: string;
      readonly podUids: readonly string[];
      readonly ageMs: number | undefined;
      readonly progress?:
        | {
            readonly bytes: number;
            readonly totalBytes: number;
            readonly layers: { readonly done: number; readonly total: number };
          }
        | undefined;
    }[]
  >;
  backoffs(): readonly {
    readonly image: string;
    readonly podUid: string;
    readonly reason: string;
    readonly message: string;
    readonly failedAt: number;
    readonly delayMs: number;
  }[];
  /** What garbage collection would do now. */
  foresee(signal: AbortSignal): Promise<{
    readonly goes: readonly ImageShown[];
    readonly stays: readonly (ImageShown & { readonly because: string })[];
    readonly freedBytes: bigint;
    readonly wantedBytes: bigint;
  }>;
}

export interface ImageShown {
  readonly id: string;
  readonly names: readonly string[];
  readonly sizeBytes: bigint;
  /** 0: never since the agent knows it. */
  readonly lastUsed: number;
  readonly firstSeen: number;
}

export interface StorageShown {
  /** Storage drivers that have registered. */
  drivers(): readonly string[];
  /** Pods that are gone, whose directories or volumes are still there. */
  leftovers(signal: AbortSignal): Promise<StorageView["leftovers"]>;
  localUse(
    signal: AbortSignal,
  ): Promise<readonly { readonly uid: string; readonly usedBytes: number; readonly inodes: number }[]>;
}

export interface MachineShown {
  fileSystems(): Promise<MachineView["fileSystems"]>;
  numa(): Promise<MachineView["numa"]>;
}

/** The agent's own process. */
export interface ProcessShown {
  readonly pid: number;
  readonly memory: () => Pick<AgentView, "rssBytes" | "heapUsedBytes" | "heapTotalBytes">;
  /** What keeps its event loop going, one word each. */
  readonly resources: () => readonly string[];
  readonly verbosity: () => number;
  readonly logLines: () => readonly string[];
  /** In the form of /metrics. */
  readonly metrics: () => Promise<string>;
  readonly watches: () => readonly {
    readonly name: string;
    /** Of the monotonic clock. */
    readonly heardAt: number | undefined;
    readonly problem: string | undefined;
  }[];
}
