import { type RunTool, ScsiDisks, WalkTurns } from "../../connections/host/index.ts";
import type { Secret } from "../../ground/model/index.ts";
import type { GrowthReports } from "./attaching/growth.ts";
import type { VolumesInUse } from "./attaching/volumes-in-use.ts";
import { DiskVolumes } from "./disks/disk-kind.ts";
import { boundedTools } from "./disks/disk-tools.ts";
import { Fc } from "./disks/fc.ts";
import { Iscsi } from "./disks/iscsi.ts";
import type { VolumeFiles } from "./file-processes/volume-files.ts";
import { FlexDrivers } from "./flex/drivers.ts";
import { FlexCalls } from "./flex/flex-calls.ts";
import { FlexVolumes } from "./flex/flex-kind.ts";
import { configMapKind } from "./kinds/config-map.ts";
import type { ContentKindPorts } from "./kinds/content-kind.ts";
import { downwardApiKind } from "./kinds/downward-api.ts";
import { emptyDirKind } from "./kinds/empty-dir.ts";
import { gitRepoKind } from "./kinds/git-repo.ts";
import { hostPathKind } from "./kinds/host-path.ts";
import { imageKind } from "./kinds/image.ts";
import type { VolumeKind } from "./kinds/kind.ts";
import { localKind } from "./kinds/local.ts";
import { nfsKind } from "./kinds/nfs.ts";
import { projectedKind } from "./kinds/projected.ts";
import { secretKind } from "./kinds/secret.ts";
import type { MountLabels } from "./kinds/selinux.ts";

export interface NodeVolumePorts extends Omit<ContentKindPorts, "walks"> {
  readonly run: RunTool;
  readonly files: VolumeFiles;
  /** `<root>/pods` and `<root>/plugins`. */
  readonly podsDir: string;
  readonly pluginsDir: string;
  /** The gate ImageVolume. */
  readonly withImages: boolean;
  readonly nodeName: string;
  /** The setting volumePluginDir. */
  readonly volumePluginDir: string;
  /** Who attaches volumes to this node; undefined: the agent itself. */
  readonly inUse: VolumesInUse | undefined;
  /** Reads a secret as it is now; undefined when there is no place that it could come from. */
  readonly secret: ((namespace: string, name: string, signal: AbortSignal) => Promise<Secret | undefined>) | undefined;
  /** Undefined where no volume grows. */
  readonly growth: GrowthReports | undefined;
  readonly syncFrequencyMs: number;
  /** Something that volumes may have waited for is there. */
  readonly onDrivers: () => void;
  /** How long a program that is a driver may take; tests are less patient. */
  readonly longestDriverCallMs?: number | undefined;
  /** Undefined where SELinux is off. */
  readonly labels?: MountLabels | undefined;
  /** Where `/sys` and `/dev` are; tests have their own. */
  readonly deviceRoot?: string | undefined;
}

/** The kinds that the agent makes by itself. */
export function nodeKinds(given: NodeVolumePorts): readonly VolumeKind[] {
  const ports = { ...given, walks: new WalkTurns(given.clock) };
  const { clock, log, volumePluginDir, onDrivers, longestDriverCallMs } = ports;
  const calls = new FlexCalls({ clock, longestCallMs: longestDriverCallMs });
  const drivers = new FlexDrivers({ clock, log, directory: volumePluginDir, calls, onChange: onDrivers });
  const tools = boundedTools(ports.run, clock);
  const scsi = (run: RunTool): ScsiDisks => new ScsiDisks(run, ports.deviceRoot);
  return [
    emptyDirKind(ports),
    hostPathKind(ports),
    configMapKind(ports),
    secretKind(ports),
    downwardApiKind(ports),
    projectedKind(ports),
    localKind(ports),
    nfsKind(ports),
    gitRepoKind(ports),
    ...(ports.withImages ? [imageKind] : []),
    new FlexVolumes({ ...ports, drivers, calls }),
    new DiskVolumes(new Iscsi({ ...ports, scsi }), { ...ports, tools }),
    new DiskVolumes(new Fc({ scsi }), { ...ports, tools }),
  ];
}
