import type { RunTool } from "../../../connections/host/index.ts";
import type { CsiClient } from "../../../connections/plugins/index.ts";
import type { Clock, Logger } from "../../../ground/base/index.ts";
import type {
  CSIDriver,
  PersistentVolumeClaim,
  PodEvent,
  RecordPodEvent,
  Secret,
  VolumeAttachment,
} from "../../../ground/model/index.ts";
import type { VolumeFiles } from "../apart/volume-files.ts";
import type { TokenManager } from "../objects/tokens.ts";

/** Port: what the cluster says of storage; undefined when there is no such object. */
export interface CsiCluster {
  csiDriver(name: string, signal: AbortSignal): Promise<CSIDriver | undefined>;
  attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined>;
  /** Whether the node's status lists the volume as attached, after we have reported it in use. */
  isAttached(uniqueName: string, signal: AbortSignal): Promise<boolean>;
  /** Read live each time. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** Tells the cluster how the growth of a volume goes on this node. */
  reportResize(claim: PersistentVolumeClaim, report: ResizeReport, signal: AbortSignal): Promise<void>;
  recordClaimEvent(claim: PersistentVolumeClaim, event: PodEvent): void;
}

export type ResizeReport =
  | { readonly state: "in progress" }
  | { readonly state: "done"; readonly capacity: string }
  | { readonly state: "failed"; readonly isInfeasible: boolean; readonly message: string };

export interface CsiPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly recordEvent: RecordPodEvent;
  readonly run: RunTool;
  readonly files: VolumeFiles;
  readonly drivers: { client(driver: string): CsiClient };
  readonly cluster: CsiCluster;
  readonly tokens: TokenManager;
  /** `volumesInUse` has changed, and the cluster waits to hear of it. */
  readonly onInUse: () => void;
  readonly nodeName: string;
  readonly pluginsDir: string;
  /** How often volumes that ask for it are published again. */
  readonly syncFrequencyMs: number;
}
