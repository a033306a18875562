import type { RuntimeConnection, RuntimeConnectionPorts } from "../connections/cri/index.ts";
import type {
  CgroupLayout,
  findSystemd,
  KernelLog,
  LogindAccess,
  Machine,
  MachineTopology,
  RunTool,
  ServiceEnvironment,
} from "../connections/host/index.ts";
import type { ApiConnection, ApiConnectionPorts } from "../connections/kube/index.ts";
import type { Tracing } from "../connections/otlp/index.ts";
import type { DevicePlugins } from "../connections/plugins/index.ts";
import type { Clock, Logger, RecentLines, TaskScope } from "../ground/base/index.ts";
import type { AgentConfig, LoadResult } from "../ground/config/index.ts";
import type { PressureSources } from "../node/eviction/index.ts";
import type { NetworkFacts } from "../node/object/index.ts";
import type { LogVerbosity, NodeApiPorts, OtherFigures, servePodResources } from "../node/server/index.ts";
import type { CgroupFiles, HostProcesses, OpenedPlugins } from "../pod/resources/index.ts";
import type { ResolvConf } from "../pod/runtime/index.ts";
import type { RunningPods } from "../pod/status/index.ts";
import type { NodeVolumePorts, VolumeKind } from "../pod/volumes/index.ts";
import type { Rollout } from "./build-rollout.ts";
import type { ClusterParts } from "./cluster-parts.ts";
import type { Ending } from "./ending.ts";

/** Everything the agent is built from. Nothing else reaches outside, so a simulation is a set of other inputs. */
export interface AgentInputs {
  readonly config: AgentConfig;
  readonly clock: Clock;
  /** From 0 up to 1: every jitter comes from here. */
  readonly random: () => number;
  readonly log: Logger;
  readonly process: ProcessFacts;
  readonly host: Host;
  readonly connectRuntime: (ports: RuntimeConnectionPorts) => RuntimeConnection;
  /** undefined: no traces are wanted. */
  readonly tracing?: Tracing | undefined;
  /** undefined: there is no API server. */
  readonly cluster: ClusterInputs | undefined;
  /** Who owns the loops of the pods; given by those who watch them end. */
  readonly scope?: TaskScope;
  /** Who decides which configuration the agent runs with; undefined: nobody, it has this one. */
  readonly rollout?: Rollout | undefined;
  /** What the agent runs for, if not for ever: it ends when this is done. */
  readonly task?: ((pods: RunningPods, signal: AbortSignal) => Promise<void>) | undefined;
}

/** What the agent knows of its own process. */
export interface ProcessFacts {
  readonly pid: number;
  readonly isRoot: boolean;
  /** The words the agent was started with. */
  readonly commandLine: readonly string[];
  readonly workDir: string;
  readonly homeDir: string | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly service: ServiceEnvironment;
  readonly logControl: LogVerbosity & { readonly stalledMs: number; remember(): Pick<RecentLines, "all"> };
  /** The body of /configz. */
  readonly configz: () => unknown;
  /** What the flags and files say now, for who wants to know whether they have changed. */
  readonly reloadConfig: () => Promise<LoadResult>;
  readonly memory: () => { readonly rssBytes: number; readonly heapUsedBytes: number; readonly heapTotalBytes: number };
  /** What keeps the event loop going, one word each. */
  readonly activeResources: () => readonly string[];
  /** Of what runs in this process beside the agent. */
  readonly otherFigures?: OtherFigures | undefined;
  /** What is in effect, which may have changed since the agent was built. */
  readonly currentConfig: () => AgentConfig;
  /** Other settings are in effect: those of the log belong to the process. */
  readonly onSettings: (config: AgentConfig) => void;
}

/** What was read of the machine before the agent was built; none of it changes while the agent runs. */
export interface HostFacts {
  readonly machine: Machine;
  readonly cgroups: CgroupLayout;
  /** Bytes set aside for huge pages, by their size in bytes. */
  readonly hugePages: ReadonlyMap<bigint, bigint>;
  /** In bytes, every size the kernel offers. */
  readonly hugePageSizes: readonly bigint[];
  readonly thermalThrottlePaths: readonly string[];
  readonly selinuxEnabled: boolean;
  /** The label of containers' files by the policy; empty where there is none. */
  readonly containerFileLabel: string;
  readonly appArmorEnabled: boolean;
  readonly canControlSwap: boolean;
  readonly pidLimit: number;
}

/** The machine: what is known of it, and what the agent does to it. */
export interface Host {
  readonly facts: HostFacts;
  /** How its CPUs and memory lie to each other; read only where it matters, since there may be thousands of files. */
  readonly readTopology: () => Promise<MachineTopology>;
  /** Devices and files that the machine swaps to. */
  readonly swaps: () => Promise<readonly string[]>;
  /** Whether volumes in memory can be kept from being swapped out. */
  readonly canMountWithoutSwap: () => Promise<boolean>;
  /** Waits for the lock file, if there is one, and keeps it for the life of the process. */
  readonly holdLock: (config: AgentConfig, ports: LockPorts) => Promise<void>;
  /** Claims the root directory for this process alone, and makes what lies below it. */
  readonly prepareDirectories: (config: AgentConfig, rootDir: string, log: Logger) => Promise<Disposable>;
  /** Sets the kernel up for pods, or throws with what keeps it from being. */
  readonly tuneKernel: (config: AgentConfig, log: Logger) => Promise<void>;
  readonly tuneProcess: (config: AgentConfig, ports: Omit<LockPorts, "ending">) => Promise<void>;
  /** Opens what others ask the agent through. */
  readonly listen: (config: AgentConfig, rootDir: string, ports: NodeApiPorts, scope: TaskScope) => Promise<void>;
  /** Answers plugins that register in the directory. Rejects while it can't, or another agent does. */
  readonly openDevicePlugins: (
    directory: string,
    plugins: DevicePlugins,
    ports: DevicePluginHost,
  ) => Promise<OpenedPlugins>;
  readonly servePodResources: typeof servePodResources;
  /** Where others look for the logs of containers by name. */
  readonly containerLogsDir: string;
  readonly cgroupFiles: CgroupFiles;
  readonly processes: HostProcesses;
  readonly findSystemd: typeof findSystemd;
  /** Given DBUS_SYSTEM_BUS_ADDRESS. */
  readonly logind: (busAddress: string | undefined) => LogindAccess;
  readonly openKernelLog: () => Promise<KernelLog>;
  /** Processes that the kernel has killed for want of memory since the boot; undefined: it does not count. */
  readonly oomKills: () => number | undefined;
  /** The machine's addresses as it has them now; none is an answer. */
  readonly addresses: (wanted: readonly string[]) => Promise<readonly string[]>;
  /** Of the file system that holds the path. */
  readonly filesystemBytes: (path: string) => Promise<bigint>;
  /** What tells that the machine runs short of something. */
  readonly pressure: PressureSources;
  /** Undefined: the node is configured to have no resolver settings. */
  readonly resolvConf: (path: string) => Promise<ResolvConf | undefined>;
  readonly volumeKinds: (ports: NodeVolumePorts) => readonly VolumeKind[];
  readonly runTool: RunTool;
}

export interface DevicePluginHost {
  readonly log: Logger;
  readonly onRegister: (resource: string) => void;
  readonly signal: AbortSignal;
}

export interface LockPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: TaskScope;
  readonly ending: Ending;
}

/** What only a member of a cluster needs. */
export interface ClusterInputs {
  /** Code that a machine of its own never loads: `await loadCluster()`. */
  readonly parts: ClusterParts;
  readonly network: NetworkFacts;
  readonly connect: (ports: ApiConnectionPorts) => ApiConnection;
}
