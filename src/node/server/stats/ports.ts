import type { ImageService, RuntimeService } from "../../../connections/cri/index.ts";
import type { CgroupReader, FileSystemUsage, Machine } from "../../../connections/host/index.ts";
import type { Clock } from "../../../ground/base/index.ts";
import type { CgroupNaming, ObservedPod, PodUid } from "../../../ground/model/index.ts";

/** What the figures of this node are taken from. */
export interface StatsPorts {
  readonly clock: Clock;
  readonly cgroups: CgroupReader;
  readonly naming: CgroupNaming;
  readonly runtime: Pick<RuntimeService, "listContainerStats">;
  readonly images: Pick<ImageService, "imageFsInfo">;
  /** The pods that the runtime was last seen to have. */
  readonly observed: () => Iterable<ObservedPod>;
  /** How full the volumes of a pod are; may take long. */
  readonly measureVolumes: (uid: PodUid, signal: AbortSignal) => Promise<readonly VolumeReading[]>;
  readonly random: () => number;
  readonly machine: Machine;
  /** The image of sandboxes, where the runtime tells it. */
  readonly sandboxImage: (signal: AbortSignal) => Promise<string | undefined>;
  readonly settings: StatsSettings;
}

/** One volume of a pod, as the volume engine measures it. */
export interface VolumeReading {
  readonly name: string;
  readonly usage: FileSystemUsage;
  /** The claim that it came through. */
  readonly claim: { readonly namespace: string; readonly name: string } | undefined;
  /** It takes the node's own disk, and counts as the pod's use of that. */
  readonly isLocalEphemeral: boolean;
}

export interface StatsSettings {
  readonly nodeName: string;
  readonly rootDir: string;
  readonly podsDir: string;
  readonly podLogsDir: string;
  /** When the agent was started, in milliseconds since 1970. */
  readonly startedAt: number;
  /** Cgroups of the node's own parts, where they are known. */
  readonly systemCgroups: {
    readonly kubelet: string | undefined;
    readonly runtime: string | undefined;
    readonly misc: string | undefined;
  };
  /** The gate KubeletPSI. */
  readonly pressure: boolean;
  /** volumeStatsAggPeriod; 0 or less: volumes are not measured. */
  readonly volumePeriodMs: number;
  /** Where the host's file system is; empty but in tests. */
  readonly hostRoot: string;
}
