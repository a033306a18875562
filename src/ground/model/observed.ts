import type { ContainerId, PodUid, SandboxId } from "./ids.ts";
import type { Container } from "./kube/gen/types.ts";
import { named } from "./named.ts";

/**
 * What the runtime says of one pod, read at one moment and already translated from CRI. All times are milliseconds
 * since 1970; 0 means the runtime gave none.
 */
export interface ObservedPod {
  readonly uid: PodUid;
  readonly name: string;
  readonly namespace: string;
  /** When the inspection began, on the scale of the clock that is never set. */
  readonly observedAt: number;
  /** Newest first. */
  readonly sandboxes: readonly ObservedSandbox[];
  /** Newest first, all instances of all names, including dead ones the runtime still remembers. */
  readonly containers: readonly ObservedContainer[];
  /** IPs of the newest sandbox while it is ready; kept from the last inspection that had some once it is not. */
  readonly ips: readonly string[];
}

export interface ObservedSandbox {
  readonly id: SandboxId;
  readonly attempt: number;
  readonly state: "ready" | "notReady";
  readonly createdAt: number;
  readonly network: "pod" | "node";
  /** undefined: the runtime reported no network status at all. */
  readonly ip: string | undefined;
  readonly additionalIps: readonly string[];
  readonly runtimeHandler: string;
  /** Which source the pod came from when the sandbox was made: file, http or api. */
  readonly podSource?: string | undefined;
}

export interface ObservedContainer {
  readonly id: ContainerId;
  readonly sandboxId: SandboxId;
  readonly name: string;
  readonly attempt: number;
  readonly state: "created" | "running" | "exited" | "unknown";
  /**
   * The runtime gave up starting it, because the agent that had asked for it was gone. One that did not run for a moment
   * is "created", though the runtime calls it ended: it can't be started any more, and has to be made anew.
   */
  readonly startCutOff?: true;
  readonly createdAt: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  /** The image as the runtime names it, for status.image. */
  readonly image: string;
  readonly imageRef: string;
  readonly imageId: string;
  readonly logPath: string;
  readonly annotations: ContainerAnnotations;
  readonly mounts: readonly ObservedMount[];
  readonly resources: ObservedResources | undefined;
  readonly user:
    | { readonly uid: number; readonly gid: number; readonly supplementalGroups: readonly number[] }
    | undefined;
}

/** What the agent wrote onto the container when it created it; all that survives a restart of the agent. */
export interface ContainerAnnotations {
  readonly hash: string;
  readonly restartCount: number;
  readonly terminationMessagePath: string;
  readonly terminationMessagePolicy: string;
  readonly deletionGraceSeconds: number | undefined;
  readonly terminationGraceSeconds: number | undefined;
  readonly preStop: NonNullable<Container["lifecycle"]>["preStop"];
  readonly ports: Container["ports"];
}

export interface ObservedMount {
  readonly containerPath: string;
  readonly hostPath: string;
}

export interface ObservedResources {
  readonly cpuShares: number;
  readonly cpuQuota: number;
  readonly cpuPeriod: number;
  readonly memoryLimitBytes: bigint;
}

/** The state by the runtime's word. */
export function listedState({ state, startCutOff }: ObservedContainer): ObservedContainer["state"] {
  return startCutOff ? "exited" : state;
}

/** The newest instance of a container name, or undefined when the runtime knows none. */
export function newestOf(observed: ObservedPod, name: string): ObservedContainer | undefined {
  return named(observed.containers, name);
}

/**
 * Compares instances of one container, or sandboxes of one pod: the newest comes first. By attempt before time: that one
 * is counted up from the one before, while the machine's time may be set back.
 */
export function newerFirst(one: Instance, other: Instance): number {
  return other.attempt - one.attempt || other.createdAt - one.createdAt;
}

interface Instance {
  readonly attempt: number;
  readonly createdAt: number;
}
