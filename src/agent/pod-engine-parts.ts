import type { RuntimeService } from "../connections/cri/index.ts";
import type { Clock, Logger, TaskScope, Tracer } from "../ground/base/index.ts";
import type { PodLedger, RecordNodeEvent, RecordPodEvent } from "../ground/model/index.ts";
import type { AgentMetrics } from "../node/metrics/index.ts";
import type { Admission, ResizeSettings } from "../pod/registry/index.ts";
import type { CpusetKeeper, Placement } from "../pod/resources/index.ts";
import type { NodeContext, StartContextPorts, StarterPorts } from "../pod/runtime/index.ts";
import type { PodVolumes } from "../pod/volumes/index.ts";
import type { PodChurn, PodSetupPorts, ResizerPorts, WorkerPorts } from "../pod/workers/index.ts";
import type { PodSight, RuntimeEventStream } from "./build-pod-sight.ts";
import type { Wakes } from "./wakes.ts";

/** What the pod engine is built from. */
export interface PodEngineParts
  extends Pick<
    StartContextPorts,
    "hostIPs" | "readHostDns" | "services" | "devicesFor" | "runtimeHandlerOf" | "readConfigMap" | "readSecret"
  > {
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly wakes: Wakes;
  readonly sight: PodSight;
  /** Owns the loops of the engine and what it does beside them. */
  readonly scope: TaskScope;
  readonly podsDir: string;
  readonly runtime: RuntimeService;
  /** As the runtime names itself; throws until it has. */
  readonly runtimeName: () => string;
  readonly runtimeEvents: RuntimeEventStream;
  /** The runtime says that memory ran out somewhere. */
  readonly onOom: () => void;
  readonly admission: Admission;
  readonly context: NodeContext;
  readonly legacyLogDir: string;
  readonly cgroups: PodSetupPorts["cgroups"] & { readonly pods: ResizerPorts["cgroups"] };
  readonly resizeSettings: ResizeSettings;
  readonly placement: Pick<Placement, "of" | "placeOf" | "hasExclusiveCpus" | "takeOver" | "sweep">;
  readonly cpusets: Pick<CpusetKeeper, "made">;
  readonly volumes: PodVolumes;
  readonly images: Pick<StarterPorts, "ensureImage" | "prefetchImage">;
  readonly churn: PodChurn;
  readonly metrics: AgentMetrics;
  readonly tracer?: Tracer;
  readonly recordPodEvent: RecordPodEvent;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly deviceHealth?: WorkerPorts["deviceHealth"];
  readonly claims?: PodSetupPorts["claims"];
  /** Every source has spoken, and no pod that runs here waits to be taken over any more. */
  readonly onPodsKnown: () => void;
  readonly settings: {
    readonly crashBackoff: { readonly initialMs: number; readonly maxMs: number };
    readonly runtimeRequestTimeoutMs: number;
    readonly minimumContainerAgeMs: number;
    readonly maxDeadPerContainer: number;
    /** Negative: no limit. */
    readonly maxDeadContainers: number;
  };
}
