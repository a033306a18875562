import type { ContainerHint, RuntimeService } from "../connections/cri/index.ts";
import type { Clock, Ledger, Logger } from "../ground/base/index.ts";
import type { IdentifiedPod, PodUid, RecordNodeEvent, RecordPodEvent } from "../ground/model/index.ts";
import type { Admission } from "../pod/registry/index.ts";
import type { ContainerContext, DnsSettings, NodeContext, StarterPorts } from "../pod/runtime/index.ts";
import type { PodMux } from "../pod/sources/index.ts";
import type { PodVolumes } from "../pod/volumes/index.ts";
import type { AgentMetrics } from "./metrics/index.ts";
import type { PodSetupPorts } from "./pod-setup.ts";

/** What the pod engine is built from. */
export interface PodEngineParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: Ledger<PodUid>;
  readonly runtime: RuntimeService;
  readonly runtimeName: string;
  readonly hints: {
    readonly source: string | undefined;
    subscribe(signal: AbortSignal): AsyncIterable<ContainerHint>;
  };
  readonly mux: PodMux;
  readonly admission: Admission;
  readonly node: NodeContext;
  /** The node's addresses as they are now; none while none is known. */
  readonly hostIPs: () => readonly string[];
  /** The node's resolver settings as they are now; rejects while they can't be read. */
  readonly readHostDns: () => Promise<DnsSettings["hostDns"]>;
  readonly legacyLogDir: string;
  readonly cgroups: PodSetupPorts["cgroups"];
  readonly volumes: PodVolumes;
  readonly services: () => ContainerContext["services"];
  /** The handler that the pod's RuntimeClass names; throws while the class is unknown. */
  readonly runtimeHandlerOf: (pod: IdentifiedPod) => string;
  readonly readConfigMap: ContainerContext["readConfigMap"];
  readonly readSecret: ContainerContext["readSecret"];
  readonly images: Pick<StarterPorts, "ensureImage" | "prefetchImage">;
  readonly metrics: AgentMetrics;
  readonly recordPodEvent: RecordPodEvent;
  readonly recordNodeEvent: RecordNodeEvent;
  /** What the runtime says of itself or of the pod network has changed. */
  readonly onRuntimeChange: () => void;
  /** Every source has spoken, and no pod that runs here waits to be taken over any more. */
  readonly onPodsKnown: () => void;
  /** Nothing of the pod is left on the node. */
  readonly onGone: (uid: PodUid) => void;
  readonly settings: {
    readonly crashBackoff: { readonly initialMs: number; readonly maxMs: number };
    readonly startSlots: number;
    readonly runtimeRequestTimeoutMs: number;
    readonly minimumContainerAgeMs: number;
    readonly maxDeadPerContainer: number;
    /** Negative: no limit. */
    readonly maxDeadContainers: number;
  };
}
