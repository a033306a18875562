// What the agent and the pages say to each other: types alone, known to both. Times are milliseconds since 1970 by the
// agent's clock, amounts are bytes or cores.

/** Good, on its way, bad, or over: what decides the colour and the sign beside a word. */
export type Tone = "good" | "busy" | "bad" | "over";

/** What a pod waits for. */
export interface Wait {
  readonly reason: string;
  readonly message: string;
  readonly since: number;
  readonly nextTryAt?: number | undefined;
}

/** One line of the table of pods. */
export interface PodRow {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly from: "api" | "manifest" | "mirror";
  readonly status: string;
  readonly tone: Tone;
  readonly ready: number;
  readonly wanted: number;
  readonly restarts: number;
  readonly lastExit?:
    | { readonly container: string; readonly text: string; readonly at: number | undefined }
    | undefined;
  readonly createdAt: number | undefined;
  readonly ip: string;
  readonly cpuLimit?: number | undefined;
  readonly memoryLimit?: number | undefined;
  readonly wait?: Wait | undefined;
  /** What the agent is at for it, when it waits for nothing. */
  readonly doing?: { readonly what: string; readonly since: number } | undefined;
  /** Where it ends: until when its containers have time. */
  readonly endsBy?: number | undefined;
}

export interface ConditionView {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly since: number | undefined;
  readonly tone: Tone;
}

export interface HealthView {
  readonly name: string;
  readonly state: "ok" | "waiting" | "failed";
  readonly text: string;
  readonly since: number;
  readonly provenAt: number | undefined;
}

export interface EventView {
  readonly at: number;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly about: string;
  readonly uid: string;
  readonly times: number;
}

/** What of one resource there is, is promised and is used. */
export interface AmountView {
  readonly name: "cpu" | "memory" | "storage" | "pods" | "pids";
  readonly capacity: number | undefined;
  readonly allocatable: number | undefined;
  readonly requested: number | undefined;
}

/** How the agent and its API server do. */
export type ApiView =
  | { readonly state: "alone" }
  | {
      readonly state: "connected" | "away";
      readonly problem: string | undefined;
      readonly nextTryAt: number | undefined;
      readonly heardAt: number | undefined;
      readonly leaseAt: number | undefined;
      readonly leaseProblem: string | undefined;
      readonly statusAt: number | undefined;
    };

export interface NodeOverview {
  readonly name: string;
  readonly version: string;
  readonly kubeletVersion: string;
  readonly kernel: string;
  readonly os: string;
  readonly architecture: string;
  readonly cgroupVersion: number;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly runtime: { readonly name: string; readonly version: string } | undefined;
  readonly runtimeProblem: string | undefined;
  readonly startedAt: number;
  readonly bootedAt: number;
  readonly conditions: readonly ConditionView[];
  readonly amounts: readonly AmountView[];
  readonly api: ApiView;
  readonly warnings: readonly EventView[];
  /** The worst that the doctor has found when he last looked; undefined: nobody has asked him. */
  readonly finding: { readonly title: string; readonly state: FindingView["state"] } | undefined;
}

/** The header that carries the part of a session which the page keeps. */
export const keyHeader = "x-nodelet-key";

/** What `sample` events and histories of the node carry, in this order. */
export const nodeSeries = [
  "at",
  "cpu",
  "memory",
  "cpuPressure",
  "memoryPressure",
  "ioPressure",
  "readRate",
  "writeRate",
  "receiveRate",
  "sendRate",
  "diskUsed",
  "pids",
] as const;
export type NodeSeries = (typeof nodeSeries)[number];
/** `null`: it can't be told. */
export type Figure = number | null;

export interface SampleView {
  readonly node: readonly Figure[];
  /** CPU in cores and memory in bytes by uid. */
  readonly pods: Readonly<Record<string, readonly [Figure, Figure]>>;
  /** Of pods that wait for an image: bytes that are here, and all of them. */
  readonly pulls: Readonly<Record<string, readonly [number, number]>>;
}

export interface HistoryView {
  /** Since when the agent looks, because somebody does. */
  readonly since: number;
  /** One row for each sample, as `nodeSeries` names them. */
  readonly node: readonly (readonly Figure[])[];
}

export interface StepView {
  readonly step: string;
  readonly subject: string;
  readonly startedAt: number;
  readonly endedAt?: number | undefined;
  readonly outcome: "running" | "ok" | "failed";
  readonly message?: string | undefined;
  readonly repeats?: number | undefined;
}

export interface ContainerDetails {
  readonly name: string;
  readonly kind: "init" | "sidecar" | "regular" | "ephemeral";
  readonly image: string;
  readonly state: string;
  readonly tone: Tone;
  readonly message: string;
  readonly since: number | undefined;
  readonly ready: boolean;
  readonly restarts: number;
  readonly lastExit: ExitView | undefined;
  readonly requests: Readonly<Record<string, string>>;
  readonly limits: Readonly<Record<string, string>>;
  readonly cpuLimit: number | undefined;
  readonly memoryLimit: number | undefined;
  readonly probes: readonly ProbeView[];
  /** Rows of time, cores, bytes, and the share of periods that were throttled. */
  readonly usage: readonly (readonly Figure[])[];
}

export interface ExitView {
  readonly code: number;
  readonly signal: string | undefined;
  readonly reason: string;
  readonly message: string;
  readonly outOfMemory: boolean;
  readonly at: number | undefined;
}

export interface ProbeView {
  readonly kind: "startup" | "liveness" | "readiness";
  readonly how: string;
  readonly result: string;
  readonly periodSeconds: number;
  readonly nextAt: number | undefined;
  /** The latest last. */
  readonly outcomes: readonly ProbeTick[];
}

export interface ProbeTick {
  readonly at: number;
  readonly outcome: "success" | "warning" | "failure" | "error";
}

export interface VolumeView {
  readonly name: string;
  readonly kind: string;
  readonly source: string;
  readonly state: string;
  readonly tone: Tone;
  readonly detail: string;
  /** Of the config map or secret whose content is on disk. */
  readonly version: string | undefined;
  readonly usedBytes: number | undefined;
  readonly capacityBytes: number | undefined;
  readonly limitBytes: number | undefined;
}

export interface PodDetails {
  readonly row: PodRow;
  readonly now: number;
  readonly node: string;
  readonly qos: string;
  /** What would help a pod that waits. */
  readonly advice: string | undefined;
  /** Images that it waits for. */
  readonly pulls: readonly PullShown[];
  /** While it ends: what goes on. */
  readonly ending: string | undefined;
  readonly steps: readonly StepView[];
  readonly dropped: number;
  readonly containers: readonly ContainerDetails[];
  readonly volumes: readonly VolumeView[];
  readonly conditions: readonly ConditionView[];
  readonly events: readonly EventView[];
  readonly usage: readonly (readonly Figure[])[];
  readonly usageSince: number | undefined;
}

export interface ImagesView {
  readonly pulls: readonly PullShown[];
  readonly backoffs: readonly BackoffView[];
  readonly images: readonly ImageView[];
  /** What garbage collection would gain now, and would want to. */
  readonly freedBytes: number;
  readonly wantedBytes: number;
}

export interface PullShown {
  readonly image: string;
  readonly pods: readonly PodName[];
  /** Undefined: it waits for its turn. */
  readonly ageMs: number | undefined;
  /** Undefined where the runtime can't tell. */
  readonly doneBytes: number | undefined;
  readonly totalBytes: number | undefined;
  readonly layers: { readonly done: number; readonly total: number } | undefined;
}

export interface PodName {
  readonly uid: string;
  readonly name: string;
}

export interface BackoffView {
  readonly image: string;
  readonly pod: PodName;
  readonly reason: string;
  readonly message: string;
  readonly nextTryAt: number;
}

export interface ImageView {
  readonly id: string;
  readonly names: readonly string[];
  readonly sizeBytes: number;
  /** Undefined: never since the agent knows it. */
  readonly lastUsed: number | undefined;
  readonly firstSeen: number;
  readonly goes: boolean;
  /** Why it stays. */
  readonly because: string;
}

export interface StorageView {
  readonly volumes: readonly (VolumeView & { readonly pod: PodName })[];
  readonly drivers: readonly string[];
  /** Of pods that are gone; what they have left can't be removed yet. */
  readonly leftovers: readonly { readonly uid: string; readonly since: number | undefined }[];
  /** What pods take of the node's own disk. */
  readonly local: readonly {
    readonly pod: PodName;
    readonly usedBytes: number;
    readonly limitBytes: number | undefined;
    readonly inodes: number;
  }[];
}

export interface CgroupView {
  readonly path: string;
  readonly depth: number;
  /** Of a pod, where it is one's. */
  readonly pod: PodName | undefined;
  /** Of a container of a pod, its name. */
  readonly container: string | undefined;
  readonly cpu: Figure;
  readonly memory: Figure;
  readonly memoryLimit: Figure;
  readonly readRate: Figure;
  readonly writeRate: Figure;
  readonly pids: Figure;
  readonly cpuPressure: Figure;
  readonly memoryPressure: Figure;
  readonly ioPressure: Figure;
}

export interface MachineView {
  readonly cgroups: readonly CgroupView[];
  /** How many more there are. */
  readonly leftOut: number;
  readonly interfaces: readonly {
    readonly name: string;
    readonly receiveRate: Figure;
    readonly sendRate: Figure;
    readonly receivedBytes: number;
    readonly sentBytes: number;
    readonly errors: number;
    readonly dropped: number;
  }[];
  readonly fileSystems: readonly {
    readonly what: string;
    readonly path: string;
    readonly usedBytes: number;
    readonly capacityBytes: number;
    readonly inodesUsed: number;
    readonly inodes: number;
  }[];
  readonly numa: readonly {
    readonly id: number;
    readonly cpus: string;
    readonly memoryBytes: number;
    readonly hugePages: readonly { readonly sizeBytes: number; readonly bytes: number }[];
  }[];
}

export interface ProcessView {
  readonly pid: number;
  readonly name: string;
  readonly cpuSeconds: number;
  readonly residentBytes: number;
  readonly openFiles: number;
  readonly startedAt: number;
}

export interface SettingView {
  readonly name: string;
  readonly value: string;
  readonly default: string;
  readonly origin: string;
  readonly isSet: boolean;
  readonly effect: "yes" | "not yet" | "none";
}

export interface ConfigView {
  readonly settings: readonly SettingView[];
  readonly gates: readonly {
    readonly name: string;
    readonly stage: string;
    readonly enabled: boolean;
    readonly default: boolean;
  }[];
  readonly files: readonly {
    readonly path: string;
    readonly changedAt: number | undefined;
    readonly isNewer: boolean;
  }[];
}

export interface CallView {
  readonly name: string;
  readonly count: number;
  readonly failed: number;
  /** Upper bounds of the buckets that they fall in, in seconds. */
  readonly p50: Figure;
  readonly p99: Figure;
}

export interface AgentView {
  readonly pid: number;
  readonly rssBytes: number;
  readonly heapUsedBytes: number;
  readonly heapTotalBytes: number;
  readonly cpu: Figure;
  /** The share of time that the event loop works, and how late timers come. */
  readonly loopBusy: Figure;
  readonly loopDelayMs: Figure;
  readonly openFiles: number;
  /** What keeps the event loop going, by kind. */
  readonly resources: Readonly<Record<string, number>>;
  readonly verbosity: number;
  readonly runtimeCalls: readonly CallView[];
  readonly apiCalls: readonly CallView[];
  readonly apiRequestsPerMinute: Figure;
  readonly watches: readonly {
    readonly name: string;
    readonly heardAt: number | undefined;
    readonly problem: string | undefined;
  }[];
  /** The oldest first. */
  readonly log: readonly string[];
}

/** What `nodelet doctor` found; its report, with the times of the others. */
export interface DoctorView {
  readonly at: number;
  readonly tookMs: number;
  readonly subject: string;
  readonly findings: readonly FindingView[];
}

export interface FindingView {
  readonly id: string;
  readonly group: string;
  readonly title: string;
  readonly state: "fail" | "unknown" | "warn" | "manual" | "pass" | "n/a";
  readonly seen: string;
  readonly from: string;
  readonly why: string;
  readonly fix: string;
}
