import type {
  IdentifiedPod,
  ObservedContainer,
  ObservedPod,
  PodStatus,
  StartReason,
} from "../../ground/model/index.ts";

/** All that a pod's status is computed from. */
export interface StatusInput {
  readonly pod: IdentifiedPod;
  readonly observed: ObservedPod;
  /** The status computed last, or the one the API holds after a restart of the agent. */
  readonly previous: PodStatus | undefined;
  readonly flags: ContainerFlags;
  /** Why the last attempt to start a container did not succeed. */
  readonly waitingReason: (containerName: string) => WaitingReason | undefined;
  readonly terminationText: (container: ObservedContainer) => string;
  readonly node: NodeFacts;
  readonly now: number;
  /** Its source asks for other resources than it was promised when it came. */
  readonly wantsResize: boolean;
  /** Its containers have been stopped for good: no container will start again. */
  readonly tornDown: boolean;
  /** Whether the newest sandbox is fit to run containers in. */
  readonly sandboxReady: boolean;
}

/** What the probes make of a running container. */
export interface ContainerFlags {
  started(container: ObservedContainer): boolean;
  ready(container: ObservedContainer): boolean;
}

export interface WaitingReason {
  readonly reason: StartReason;
  readonly message: string;
}

export interface NodeFacts {
  /** Scheme of container ids, as the runtime calls itself. */
  readonly runtimeName: string;
  /** The node's addresses, primary family first. */
  readonly hostIPs: readonly string[];
}
