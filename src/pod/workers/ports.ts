import type { Clock, Logger, Tracer } from "../../ground/base/index.ts";
import type {
  Container,
  ContainerResources,
  GivenResources,
  IdentifiedPod,
  NodeDecision,
  ObservedContainer,
  ObservedPod,
  PodLedger,
  PodStatus,
  PodUid,
  RecordPodEvent,
  ResizableResource,
  ResourceStatus,
  SandboxId,
} from "../../ground/model/index.ts";
import type { ProbeKind, ProbeResult } from "../probes/index.ts";
import type { StartContainerRequest } from "../runtime/index.ts";
import type { PendingResize, StatusInput, StatusNode } from "../status/index.ts";
import type { PodChurn } from "./pod-churn.ts";
import type { WorkerTable } from "./worker-table.ts";

/** What a pod's worker needs of the rest of the agent. */
export interface WorkerPorts {
  /** Where the workers are kept. */
  readonly table: WorkerTable;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  readonly observer: PodObserverPort;
  readonly probes: ProbesPort;
  readonly statuses: StatusPort;
  readonly starter: StarterPort;
  readonly killer: KillerPort;
  readonly setup: PodSetupPort;
  readonly resize: ResizePort;
  /** How the devices of a container are, where that is shown. */
  readonly deviceHealth?: ((pod: IdentifiedPod, container: string) => readonly ResourceStatus[]) | undefined;
  readonly checkpoints: PodCheckpointPort;
  readonly hashOf: (container: Container) => string;
  readonly node: () => StatusNode;
  readonly terminationTexts: TerminationTextsPort;
  /** Why pods that need the pod network can't start now; undefined when it is ready. */
  readonly networkProblem: () => string | undefined;
  /** Whether the runtime has, or may have, a pod of this full name that nobody has claimed or begun to stop yet. */
  readonly isNameUnclaimed: (fullName: string) => boolean;
  readonly crashBackoff: { readonly initialMs: number; readonly maxMs: number };
  /** Whether a source still lists the pod, if only as one being deleted. */
  readonly isListed: (uid: PodUid) => boolean;
  /** How many pods may be starting at once. */
  readonly churn: PodChurn;
  readonly metrics?: WorkerMetrics | undefined;
  readonly tracer?: Tracer;
}

/** Told what workers do, for metrics. */
export interface WorkerMetrics {
  /** The first sync of a pod begins, this long after the pod came. */
  began(pod: IdentifiedPod | undefined, waitedMs: number): void;
  synced(operation: SyncOperation, durationMs: number): void;
  /** Whether the pod does not have yet what it was promised. */
  resizing(uid: PodUid, isUnderWay: boolean): void;
  /** A try to give a pod what it was promised took this long. */
  resized(isDone: boolean, durationMs: number): void;
  /** A pod that only the runtime knows is being stopped. */
  orphaned(): void;
  /** A pod came back under the same uid after it had been stopped. */
  restarted(pod: IdentifiedPod): void;
}

export type SyncOperation = "create" | "update" | "sync" | "kill" | "terminated";

export interface PodObserverPort {
  latest(uid: PodUid): ObservedPod | undefined;
  inspect(uid: PodUid, signal: AbortSignal): Promise<ObservedPod>;
  /** What is remembered of the pod may be wrong. */
  doubt(uid: PodUid): void;
  forget(uid: PodUid): void;
}

/** What ended containers left as their last words. */
export interface TerminationTextsPort {
  /** Reads what is not known yet; resolves soon even where that takes long, and never rejects. */
  prepare(uid: PodUid, containers: readonly ObservedContainer[]): Promise<void>;
  of(container: ObservedContainer, uid: PodUid): string;
  forget(uid: PodUid): void;
}

export interface ProbesPort {
  ensure(pod: IdentifiedPod): void;
  observe(pod: IdentifiedPod, observed: ObservedPod): void;
  beginTermination(uid: PodUid): void;
  remove(uid: PodUid): void;
  /** undefined: the container has no such probe. */
  result(uid: PodUid, container: ObservedContainer, kind: ProbeKind): ProbeResult | undefined;
}

export interface StatusPort {
  get(uid: PodUid): PodStatus | undefined;
  /** False for a status that would bring an ended container back to life; `set` refuses it. */
  accepts(pod: IdentifiedPod, status: PodStatus): boolean;
  set(pod: IdentifiedPod, status: PodStatus): void;
  delete(uid: PodUid): void;
  restore(uid: PodUid, status: PodStatus): void;
}

export interface StarterPort {
  /** `starting` names the containers that will start in it, so that their images can be fetched meanwhile. */
  createSandbox(
    pod: IdentifiedPod,
    attempt: number,
    starting: readonly string[],
    signal: AbortSignal,
  ): Promise<SandboxId>;
  /** Throws StartError with the reason users see. */
  startContainer(request: StartContainerRequest, signal: AbortSignal): Promise<void>;
  removeContainer(container: ObservedContainer, signal: AbortSignal, logs?: "remove" | "keep"): Promise<void>;
}

/** Gives running containers other resources in place. */
export interface ResizePort {
  /** What the pod and its containers were given. */
  givenTo(uid: PodUid): GivenResources;
  /** What the pod asks for and does not have; undefined: nothing. */
  pending(uid: PodUid): PendingResize | undefined;
  /**
   * The version of the spec whose resources were promised last, until `told`; undefined: no news since, or none that
   * the pod as it is worked on has heard of.
   */
  accepted(pod: IdentifiedPod): { readonly generation: number | undefined } | undefined;
  /** What users are told of what the pod as a whole has; undefined: nothing. */
  podLevel(pod: IdentifiedPod, isRunning: boolean): Promise<StatusInput["resize"]["podLevel"]>;
  /** Users know that the pod has what it was promised. */
  told(uid: PodUid, generation: number | undefined): void;
  /** Resolves when what pods were promised would outlive the agent; a disk that does not answer is not waited for. */
  promiseKept(signal: AbortSignal): Promise<void>;
  /** Raises what the pod's cgroup allows to what its containers were promised, where it is less. */
  raisePod(pod: IdentifiedPod, resources: readonly ResizableResource[], signal: AbortSignal): Promise<void>;
  /** Makes it what they were promised. */
  lowerPod(pod: IdentifiedPod, resources: readonly ResizableResource[], signal: AbortSignal): Promise<void>;
  /** Lets the pod's cgroup follow what its containers have got by starting anew. */
  followPod(pod: IdentifiedPod): Promise<void>;
  /** The pod as a whole has this now. */
  notePod(uid: PodUid, resources: ContainerResources): void;
  /** Gives a running container the resources that it is described with here, and notes it. */
  update(pod: IdentifiedPod, running: ObservedContainer, container: Container, signal: AbortSignal): Promise<void>;
  /** In bytes; undefined: the pod as a whole has no limit. */
  podMemoryLimit(pod: IdentifiedPod): bigint | undefined;
  podMemoryUsage(pod: IdentifiedPod): Promise<bigint>;
  containerMemoryUsage(running: ObservedContainer, signal: AbortSignal): Promise<bigint>;
}

export interface KillerPort {
  killContainer(
    request: {
      readonly pod: IdentifiedPod;
      readonly container: ObservedContainer;
      readonly graceSeconds: number;
      readonly message: string | undefined;
      readonly preStopDone: Set<string>;
    },
    signal: AbortSignal,
  ): Promise<void>;
  killPod(
    request: {
      readonly pod: IdentifiedPod | undefined;
      readonly observed: ObservedPod;
      readonly deadline: number;
      readonly atOnce?: boolean;
      readonly why: string;
      readonly preStopDone: Set<string>;
    },
    signal: AbortSignal,
  ): Promise<void>;
}

/** What must be there before containers start, and be gone after the last one ended. */
export interface PodSetupPort {
  prepare(pod: IdentifiedPod, signal: AbortSignal): Promise<void>;
  /** Has the pod's resource claims made ready; may take long, and holds up nobody else. Rejects with ClaimError. */
  prepareClaims(pod: IdentifiedPod, hasSandbox: boolean, signal: AbortSignal): Promise<void>;
  /** Whether resource claims are not given back: until then, nobody is told that the pod has ended. */
  holdsClaims(uid: PodUid): boolean;
  /** The pod runs, perhaps since an earlier run of the agent: what was prepared follows its present version. Never waits. */
  keep(pod: IdentifiedPod): void;
  release(uid: PodUid, pod: IdentifiedPod | undefined, signal: AbortSignal): Promise<void>;
  /** Removes containers, sandboxes, logs and directories of a pod that nobody wants any more. */
  removeContent(uid: PodUid, signal: AbortSignal): Promise<void>;
}

/** What a worker remembers across a restart of the agent. */
export interface PodCheckpoint {
  readonly status?: PodStatus;
  readonly crashBackoff?: Readonly<Record<string, { readonly delayMs: number; readonly updatedAt: number }>>;
  /** Why the node takes it off; said here before its containers are killed, which nobody could tell from a crash. */
  readonly decision?: NodeDecision;
  /** Ids, by name, of containers that are killed so that others take their place; said here before, for the same reason. */
  readonly replaced?: Readonly<Record<string, string>>;
}

export interface PodCheckpointPort {
  /** Throws where that can't be told for now. */
  load(uid: PodUid): PodCheckpoint;
  /** Resolves when it would survive the end of the agent. */
  save(uid: PodUid, checkpoint: PodCheckpoint): Promise<void>;
}
