import type { RunTool } from "../../../connections/host/index.ts";
import type { CsiClient } from "../../../connections/plugins/index.ts";
import type { Clock, Logger } from "../../../ground/base/index.ts";
import type { CSIDriver, RecordPodEvent, Secret, VolumeAttachment } from "../../../ground/model/index.ts";
import type { GrowthReports } from "../attaching/growth.ts";
import type { Attachment } from "../attaching/volumes-in-use.ts";
import type { VolumeFiles } from "../file-processes/volume-files.ts";
import type { MountLabels } from "../kinds/selinux.ts";
import type { TokenManager } from "../objects/service-account-tokens.ts";

/** Port: what the cluster says of storage; undefined when there is no such object. */
export interface CsiCluster extends GrowthReports {
  csiDriver(name: string, signal: AbortSignal): Promise<CSIDriver | undefined>;
  attachment(name: string, signal: AbortSignal): Promise<VolumeAttachment | undefined>;
  /** Where the volume is attached by the node's status, after we have reported it in use; undefined: it is not. */
  attachedAt(uniqueName: string, signal: AbortSignal): Promise<Attachment | undefined>;
  /** Read live each time. */
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret | undefined>;
}

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
  /** Undefined where SELinux is off. */
  readonly labels?: MountLabels | undefined;
  /** `volumesInUse` has changed, and the cluster waits to hear of it. */
  readonly onInUse: () => void;
  readonly nodeName: string;
  readonly pluginsDir: string;
  /** How often volumes that ask for it are published again. */
  readonly syncFrequencyMs: number;
}
