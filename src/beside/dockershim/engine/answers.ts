// Docker's answers as the shim needs them, read out of whatever JSON came. Pure.
import { type Fields, fieldsOf, flagIn, labelTable, listIn, numberIn, objectIn, textIn, textsIn } from "./fields.ts";
import { nanosOf } from "./times.ts";

/** Docker's word for where a container is in its life. */
export type EngineState = "created" | "running" | "paused" | "restarting" | "removing" | "exited" | "dead";

export interface ListedContainer {
  readonly id: string;
  /** With its leading slash cut. */
  readonly name: string;
  /** As it was asked for, or its id when that name leads elsewhere by now. */
  readonly image: string;
  readonly imageId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly state: EngineState | "";
  readonly networkMode: string;
  /** To the second. */
  readonly createdAt: bigint;
}

export interface EngineMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
  readonly propagation: string;
}

export interface InspectedContainer {
  readonly id: string;
  readonly name: string;
  readonly createdAt: bigint;
  readonly imageId: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly config: {
    readonly image: string;
    readonly user: string;
    readonly tty: boolean;
    readonly openStdin: boolean;
    readonly stdinOnce: boolean;
    readonly stopSignal: string;
  };
  readonly state: {
    readonly status: EngineState | "";
    readonly running: boolean;
    readonly oomKilled: boolean;
    readonly exitCode: number;
    readonly error: string;
    readonly pid: number;
    readonly startedAt: bigint;
    readonly finishedAt: bigint;
  };
  readonly host: {
    readonly networkMode: string;
    readonly ipcMode: string;
    readonly pidMode: string;
    readonly usernsMode: string;
    readonly cgroupParent: string;
    readonly runtime: string;
    readonly mounts: readonly EngineMount[];
    readonly resources: EngineResources;
  };
  readonly resolvConfPath: string;
  /** Of Docker's own networks. */
  readonly addresses: readonly string[];
  /** Only where it was asked for. */
  readonly writtenBytes: number | undefined;
}

export interface EngineResources {
  readonly memory: number;
  readonly memorySwap: number;
  readonly cpuShares: number;
  readonly cpuQuota: number;
  readonly cpuPeriod: number;
  readonly cpusetCpus: string;
  readonly cpusetMems: string;
  readonly oomScoreAdj: number;
}

export interface EngineImage {
  readonly id: string;
  readonly tags: readonly string[];
  readonly digests: readonly string[];
  readonly size: number;
  /** Only where the image was asked for by itself. */
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface EngineInfo {
  readonly rootDir: string;
  readonly cgroupDriver: string;
  readonly runtimes: readonly string[];
  readonly liveRestore: boolean;
  readonly securityOptions: readonly string[];
}

export interface EngineExec {
  readonly running: boolean;
  readonly exitCode: number;
  readonly pid: number;
  readonly containerId: string;
}

const states: ReadonlySet<string> = new Set<EngineState>([
  ...(["created", "running", "paused", "restarting", "removing", "exited", "dead"] as const),
]);

function stateOf(word: string): EngineState | "" {
  return states.has(word) ? (word as EngineState) : "";
}

export function listedContainer(value: unknown): ListedContainer {
  const fields = fieldsOf(value);
  return {
    id: textIn(fields, "Id"),
    name: (textsIn(fields, "Names")[0] ?? "").replace(/^\//, ""),
    image: textIn(fields, "Image"),
    imageId: textIn(fields, "ImageID"),
    labels: labelTable(fields, "Labels"),
    state: stateOf(textIn(fields, "State")),
    networkMode: textIn(objectIn(fields, "HostConfig"), "NetworkMode"),
    createdAt: BigInt(Math.trunc(numberIn(fields, "Created"))) * 1_000_000_000n,
  };
}

export function inspectedContainer(value: unknown): InspectedContainer {
  const fields = fieldsOf(value);
  const config = objectIn(fields, "Config");
  const state = objectIn(fields, "State");
  const host = objectIn(fields, "HostConfig");
  const written = fields["SizeRw"];
  return {
    id: textIn(fields, "Id"),
    name: textIn(fields, "Name").replace(/^\//, ""),
    createdAt: nanosOf(textIn(fields, "Created")),
    imageId: textIn(fields, "Image"),
    labels: labelTable(config, "Labels"),
    config: {
      image: textIn(config, "Image"),
      user: textIn(config, "User"),
      tty: flagIn(config, "Tty"),
      openStdin: flagIn(config, "OpenStdin"),
      stdinOnce: flagIn(config, "StdinOnce"),
      stopSignal: textIn(config, "StopSignal"),
    },
    state: {
      status: stateOf(textIn(state, "Status")),
      running: flagIn(state, "Running"),
      oomKilled: flagIn(state, "OOMKilled"),
      exitCode: numberIn(state, "ExitCode"),
      error: textIn(state, "Error"),
      pid: numberIn(state, "Pid"),
      startedAt: nanosOf(textIn(state, "StartedAt")),
      finishedAt: nanosOf(textIn(state, "FinishedAt")),
    },
    host: {
      networkMode: textIn(host, "NetworkMode"),
      ipcMode: textIn(host, "IpcMode"),
      pidMode: textIn(host, "PidMode"),
      usernsMode: textIn(host, "UsernsMode"),
      cgroupParent: textIn(host, "CgroupParent"),
      runtime: textIn(host, "Runtime"),
      mounts: [...listIn(host, "Mounts").map(mountOf), ...textsIn(host, "Binds").map(mountOfBind)],
      resources: limitsOf(host),
    },
    resolvConfPath: textIn(fields, "ResolvConfPath"),
    addresses: addressesOf(objectIn(fields, "NetworkSettings")),
    writtenBytes: typeof written === "number" ? written : undefined,
  };
}

function mountOf(value: unknown): EngineMount {
  const fields = fieldsOf(value);
  return {
    source: textIn(fields, "Source"),
    target: textIn(fields, "Target"),
    readOnly: flagIn(fields, "ReadOnly"),
    propagation: textIn(objectIn(fields, "BindOptions"), "Propagation"),
  };
}

function mountOfBind(bind: string): EngineMount {
  const [source = "", target = "", options = ""] = bind.split(":");
  const words = options.split(",");
  const propagation = words.find((word) => /^r?(shared|slave|private)$/.test(word)) ?? "";
  return { source, target, readOnly: words.includes("ro"), propagation };
}

function limitsOf(host: Fields): EngineResources {
  return {
    memory: numberIn(host, "Memory"),
    memorySwap: numberIn(host, "MemorySwap"),
    cpuShares: numberIn(host, "CpuShares"),
    cpuQuota: numberIn(host, "CpuQuota"),
    cpuPeriod: numberIn(host, "CpuPeriod"),
    cpusetCpus: textIn(host, "CpusetCpus"),
    cpusetMems: textIn(host, "CpusetMems"),
    oomScoreAdj: numberIn(host, "OomScoreAdj"),
  };
}

function addressesOf(settings: Fields): readonly string[] {
  const networks = Object.values(objectIn(settings, "Networks")).map(fieldsOf);
  const of = (name: string): string[] => networks.map((network) => textIn(network, name)).filter((ip) => ip !== "");
  return [...of("IPAddress"), ...of("GlobalIPv6Address")];
}

export function engineImage(value: unknown): EngineImage {
  const fields = fieldsOf(value);
  const config = objectIn(fields, "Config");
  // What has no name is listed with these.
  const named = (name: string): boolean => !name.startsWith("<none>");
  return {
    id: textIn(fields, "Id"),
    tags: textsIn(fields, "RepoTags").filter(named),
    digests: textsIn(fields, "RepoDigests").filter(named),
    size: numberIn(fields, "Size"),
    user: textIn(config, "User"),
    labels: labelTable(config, "Labels"),
  };
}

export function engineInfo(value: unknown): EngineInfo {
  const fields = fieldsOf(value);
  return {
    rootDir: textIn(fields, "DockerRootDir"),
    cgroupDriver: textIn(fields, "CgroupDriver") || "cgroupfs",
    runtimes: Object.keys(objectIn(fields, "Runtimes")),
    liveRestore: flagIn(fields, "LiveRestoreEnabled"),
    securityOptions: textsIn(fields, "SecurityOptions"),
  };
}

export function engineExec(value: unknown): EngineExec {
  const fields = fieldsOf(value);
  return {
    running: flagIn(fields, "Running"),
    exitCode: numberIn(fields, "ExitCode"),
    pid: numberIn(fields, "Pid"),
    containerId: textIn(fields, "ContainerID"),
  };
}
