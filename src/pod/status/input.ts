import type {
  GivenResources,
  IdentifiedPod,
  ObservedContainer,
  ObservedPod,
  ObservedResources,
  PodStatus,
  ResourceStatus,
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
  readonly node: StatusNode;
  readonly now: number;
  readonly resize: ResizeFacts;
  /** How the devices of a container are; none where that is not shown. */
  readonly deviceHealth: (containerName: string) => readonly ResourceStatus[];
  /** Whether a container was killed so that another one takes its place, whatever its restart policy says of its end. */
  readonly isReplaced?: (container: ObservedContainer) => boolean;
  /** Its containers have been stopped for good: no container will start again. */
  readonly tornDown: boolean;
  /** Whether the newest sandbox is fit to run containers in. */
  readonly sandboxReady: boolean;
}

/** What is known of the resources of the pod beyond what it was promised, which its spec here says. */
export interface ResizeFacts {
  /** Its source asks for other resources, and why it does not have them. */
  readonly pending: PendingResize | undefined;
  /** The version of the spec whose resources were promised last, where users do not know that it is done. */
  readonly accepted: { readonly generation: number | undefined } | undefined;
  readonly given: GivenResources;
  /** Something of the pod is being changed now, be it that all containers have what they were promised. */
  readonly isUnderWay: boolean;
  /** Users are told what the pod as a whole has, by the kernel's word where it runs; undefined: they are not. */
  readonly podLevel: { readonly ofCgroup: ObservedResources | undefined } | undefined;
  /** Why the last attempt to give the pod what it was promised did not succeed. */
  readonly error: string | undefined;
}

/** A resize that was not accepted. */
export interface PendingResize {
  readonly reason: "Deferred" | "Infeasible";
  readonly message: string;
  /** The version of the spec that this was said of. */
  readonly generation: number | undefined;
  /** When it is tried again if nothing happens before; undefined: only when the pod's spec changes. */
  readonly nextTryAt: number | undefined;
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

export interface StatusNode {
  /** Scheme of container ids, as the runtime calls itself. */
  readonly runtimeName: string;
  /** The node's addresses, primary family first. */
  readonly hostIPs: readonly string[];
}
