import type { Logger } from "../../../ground/base/index.ts";
import type {
  CgroupNaming,
  ConfigMap,
  IdentifiedPod,
  ResourceAmounts,
  Secret,
  Service,
} from "../../../ground/model/index.ts";

/** Translation needs facts from outside the pod. Each topic takes only the small part it reads. */

export interface Directories {
  readonly rootDir: string;
  readonly podLogsDir: string;
}

/** What a resolv.conf says. */
export interface ResolvConf {
  readonly nameservers: readonly string[];
  readonly searches: readonly string[];
  readonly options: readonly string[];
}

export interface DnsSettings {
  readonly clusterDns: readonly string[];
  readonly clusterDomain: string;
  /** The node's own resolver settings; undefined when the node is configured to have none (resolvConf ""). */
  readonly hostDns: ResolvConf | undefined;
  readonly nodeIps: readonly string[];
}

export interface SwapSettings {
  /** False: the kernel cannot limit swap, so nothing is said about it. */
  readonly controllable: boolean;
  readonly behavior: "NoSwap" | "LimitedSwap";
  readonly capacityBytes: bigint;
}

export interface ResourceSettings {
  readonly cgroupVersion: 1 | 2;
  /** Undefined: CPU limits are not enforced (cpuCFSQuota false). */
  readonly cpuPeriodUs: number | undefined;
  readonly memoryCapacityBytes: bigint;
  readonly swap: SwapSettings;
  /** On cgroup v2: kill one process of a container that runs out of memory instead of all. */
  readonly singleProcessOomKill: boolean;
  /** In bytes, every size the kernel offers. */
  readonly hugePageSizes: readonly bigint[];
  /** Undefined: the MemoryQoS gate is off. */
  readonly memoryQos:
    | {
        readonly throttlingFactor: number;
        readonly pageSizeBytes: number;
        /** What all pods together may use: the most that a container without a limit can have. */
        readonly podsMemoryBytes: bigint;
      }
    | undefined;
  readonly nodeAllocatable: ResourceAmounts;
}

/** What the runtime says of the handler that a pod's RuntimeClass names. */
export interface RuntimeHandlerInfo {
  /** Empty for the default handler. */
  readonly name: string;
  readonly recursiveReadOnlyMounts: boolean;
  readonly userNamespaces: boolean;
}

export interface IdRange {
  readonly firstHostId: number;
  readonly length: number;
}

/** Port: the host ids set aside for a pod with a user namespace of its own; the same answer for the pod's life. */
export type AllocateIds = (pod: IdentifiedPod) => Promise<IdRange>;

export interface MappingGates {
  readonly hostnameOverride: boolean;
  readonly containerStopSignals: boolean;
  readonly envFiles: boolean;
}

/** The settings that hold for every pod of the node. */
export interface NodeContext extends Directories, ResourceSettings {
  readonly dns: DnsSettings;
  readonly cgroups: CgroupNaming;
  readonly seccompDefault: boolean;
  readonly selinuxEnabled: boolean;
  /** Paths below /sys that exist on this machine and are masked beside the usual ones. */
  readonly thermalThrottlePaths: readonly string[];
  readonly gates: MappingGates;
  readonly allocateIds: AllocateIds;
  readonly log: Logger;
}

/** What is needed to describe one pod's sandbox. */
export interface SandboxContext extends NodeContext {
  readonly runtimeHandler: RuntimeHandlerInfo;
  /** From annotations of the pod's persistent volumes. */
  readonly volumeGroups: readonly number[];
  /** True when any container of the pod holds CPUs of its own. */
  readonly podHasExclusiveCpus: boolean;
}

/** A volume of the pod, ready to be mounted. */
export type PodVolume =
  | { readonly type: "filesystem"; readonly hostPath: string; readonly readOnly: boolean; readonly relabel: boolean }
  | { readonly type: "block"; readonly devicePath: string; readonly readOnly: boolean }
  /** Mounted by the runtime from an image that is fetched like a container's own. */
  | { readonly type: "image"; readonly image: string };

export interface SubPathRequest {
  readonly pod: IdentifiedPod;
  readonly containerName: string;
  readonly volumeName: string;
  readonly volumePath: string;
  readonly subPath: string;
  /** Position among the container's volume mounts. */
  readonly mountIndex: number;
}

/** Port: makes a path inside a volume, safe against links that lead out of it. */
export interface SubPaths {
  /** Creates what is missing of the path. */
  create(request: SubPathRequest): Promise<void>;
  /** The host path to hand to the runtime. */
  prepare(request: SubPathRequest): Promise<string>;
}

export interface ImageUser {
  readonly uid?: bigint | undefined;
  readonly username?: string | undefined;
}

/** The image a container runs, as the runtime knows it. */
export interface ContainerImage extends ImageUser {
  readonly ref: string;
  /** The images that the container mounts, by name of the volume. */
  readonly mounted?: ReadonlyMap<string, string>;
}

/** Port: undefined when there is no such object; any other trouble is thrown. */
export type ReadConfigMap = (namespace: string, name: string, signal: AbortSignal) => Promise<ConfigMap | undefined>;
export type ReadSecret = (namespace: string, name: string, signal: AbortSignal) => Promise<Secret | undefined>;

/** Port: the text of a file inside a volume, safe against links that lead out of it. */
export type ReadVolumeFile = (volumePath: string, path: string) => Promise<string>;

export type KnownServices =
  /** No API server: pods get no service variables. */
  | { readonly state: "none" }
  | { readonly state: "unread" }
  | { readonly state: "read"; readonly services: readonly Service[] };

export interface EnvContext {
  readonly dns: Pick<DnsSettings, "nodeIps">;
  readonly gates: Pick<MappingGates, "envFiles">;
  /** As the runtime reported them; empty while the pod has none. */
  readonly podIps: readonly string[];
  readonly nodeAllocatable: ResourceAmounts;
  readonly volumes: ReadonlyMap<string, PodVolume>;
  readonly services: KnownServices;
  /** Undefined without an API server. */
  readonly readConfigMap: ReadConfigMap | undefined;
  readonly readSecret: ReadSecret | undefined;
  readonly readVolumeFile: ReadVolumeFile;
}

/** What device plugins and DRA give a container. */
export interface DeviceGrants {
  readonly env: ReadonlyMap<string, string>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly mounts: readonly { readonly hostPath: string; readonly containerPath: string; readonly readOnly: boolean }[];
  readonly devices: readonly {
    readonly hostPath: string;
    readonly containerPath: string;
    readonly permissions: string;
  }[];
  /** Names of CDI devices, those of DRA before those of device plugins. */
  readonly cdiDevices: readonly string[];
}

export const noDeviceGrants: DeviceGrants = {
  env: new Map(),
  annotations: {},
  mounts: [],
  devices: [],
  cdiDevices: [],
};

export interface CpuAndMemoryPlacement {
  /** True: the container owns its CPUs and needs no quota. */
  readonly exclusiveCpus: boolean;
  /** In the kernel's list form ("0-3,8"); empty for no restriction. */
  readonly cpus: string;
  readonly memoryNodes: string;
}

export const anywhere: CpuAndMemoryPlacement = { exclusiveCpus: false, cpus: "", memoryNodes: "" };

/** What is needed to describe one container. */
export interface ContainerContext extends SandboxContext, EnvContext {
  readonly restartCount: number;
  readonly image: ContainerImage;
  readonly placement: CpuAndMemoryPlacement;
  readonly devices: DeviceGrants;
  readonly subPaths: SubPaths;
  /** The newest instance of a container of this pod, for an ephemeral container that looks into another. */
  readonly containerIdOf: (name: string) => string | undefined;
  readonly dns: DnsSettings;
  readonly gates: MappingGates;
}
