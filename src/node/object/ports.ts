import type { Machine } from "../../connections/host/index.ts";
import type {
  ContainerImage,
  DeviceAmounts,
  NodeAddress,
  NodeConfigStatus,
  NodeFeatures,
  NodeRuntimeHandler,
} from "../../ground/model/index.ts";

/** What the node tells of itself. Everything is the present truth; whoever changes it calls `wake` of the keeper. */
export interface NodeFacts {
  /** Read once at the start. */
  readonly machine: Machine;
  /** Bytes set aside for huge pages, by their size in bytes; read once at the start. */
  readonly hugePages: ReadonlyMap<bigint, bigint>;
  /** Size in bytes of the filesystem that holds the root directory; undefined while not known. */
  readonly rootFilesystemBytes: () => Promise<bigint | undefined>;
  readonly network: NetworkFacts;
  readonly runtime: () => RuntimeFacts;
  /** Sorted and cut as the status wants them. */
  readonly images: (signal: AbortSignal) => Promise<readonly ContainerImage[]>;
  readonly pressure: () => { readonly memory: boolean; readonly disk: boolean; readonly pid: boolean };
  /** Sorted, without doubles; undefined until the volumes of all pods are known. */
  readonly volumesInUse: () => readonly string[] | undefined;
  readonly devices: () => DeviceFacts;
  /** Why the node is about to go away. */
  readonly shutdownProblem: () => string | undefined;
  /** Something the machine lacks that pods can do without; shown with the Ready condition. */
  readonly shortcoming: string | undefined;
  /** Undefined: no cloud is asked. */
  readonly cloud?: NodeCloud | undefined;
  /** Which configuration the agent runs with; undefined: there is nothing to say about it. */
  readonly config?: (() => NodeConfigFacts | undefined) | undefined;
}

/** What a cloud says of this machine. */
export interface CloudFacts {
  readonly providerId: string;
  readonly addresses: readonly NodeAddress[];
  readonly zone: string;
  readonly region: string;
  readonly instanceType: string;
}

export interface NodeCloud {
  /** Undefined while it has never answered. */
  readonly instance: CloudFacts | undefined;
  /** Waits for an answer, but not for long. */
  firstAnswer(signal: AbortSignal): Promise<void>;
}

export interface NodeConfigFacts {
  /** Shown where the API server has been told where the configuration is to come from. */
  readonly status: NodeConfigStatus;
  readonly annotation: string | undefined;
}

export interface RuntimeFacts {
  /** Name and version as the runtime gives them; undefined while it has not. */
  readonly identity: { readonly name: string; readonly version: string } | undefined;
  /** Why no pod can be started; empty when all is well. */
  readonly problems: readonly string[];
  readonly networkProblem: string | undefined;
  readonly handlers: readonly NodeRuntimeHandler[];
  /** Undefined when the runtime says nothing about them. */
  readonly features: NodeFeatures | undefined;
}

export interface DeviceFacts extends DeviceAmounts {
  /** False when the agent remembers no device of an earlier run: what the Node still says about them is stale. */
  readonly hasCheckpoint: boolean;
}

export interface NetworkFacts {
  /** Every address of this machine's interfaces. */
  readonly ownAddresses: () => ReadonlySet<string>;
  readonly lookup: (host: string, signal: AbortSignal) => Promise<readonly string[]>;
  /** The address of the interface that the default route leaves by. */
  readonly defaultAddress: (family: 4 | 6) => Promise<string | undefined>;
}
