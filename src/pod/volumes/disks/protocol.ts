import type { RunTool } from "../../../connections/host/index.ts";
import type { VolumeSource, WantedVolume } from "../kinds/kind.ts";

/** A disk that is reached over a network, as a volume names it. */
export interface RemoteDisk {
  /** Where it is mounted once for all pods, below the directory of its kind; no part of it leads elsewhere. */
  readonly directory: string;
  /** The name under which the cluster attaches the volume to nodes. */
  readonly uniqueName: string;
  readonly fsType: string;
  readonly readOnly: boolean;
}

export interface Attaching {
  /** The directory of the disk. Not there yet, or as an earlier run has left it. */
  readonly place: string;
  /** Places of other disks of this kind, now. What is in them may be anybody's; their names are ours. */
  readonly others: () => Promise<readonly string[]>;
  readonly progress: (text: string) => void;
  readonly run: RunTool;
}

/** How disks of one kind come to this node and leave it. What is needed to let go of one is in its place, and named so. */
export interface DiskProtocol<Disk extends RemoteDisk> {
  readonly plugin: string;
  /** How many names long `directory` is. */
  readonly depth: 1 | 2;
  /** Whether a name in the place of a block device is a file of ours, and no pod's. */
  isRecord(name: string): boolean;
  readonly isMeasured: boolean;
  matches(source: VolumeSource): boolean;
  /** Throws when the volume names no disk that could be. */
  diskOf(wanted: WantedVolume): Disk;
  /** The path of its device. Makes the place first, with all that `detach` needs: the next agent may have to do that. */
  attach(disk: Disk, attaching: Attaching, signal: AbortSignal): Promise<string>;
  /** Nothing of the disk is mounted any more. Afterwards its place is gone. */
  detach(detaching: Omit<Attaching, "progress">, signal: AbortSignal): Promise<void>;
  /** What the cluster may know the disk of a place by. */
  uniqueNamesOf(directory: string): readonly string[];
}
