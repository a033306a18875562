import type { RunTool } from "../../host/index.ts";
import type { ApiDataPorts } from "./api-data.ts";
import { configMapKind, downwardApiKind, secretKind } from "./config-data.ts";
import { emptyDirKind } from "./empty-dir.ts";
import { hostPathKind } from "./host-path.ts";
import { type EnsureVolumeImage, imageKind } from "./image.ts";
import type { VolumeKind } from "./kind.ts";
import { localKind } from "./local.ts";
import { nfsKind } from "./nfs.ts";
import { projectedKind } from "./projected.ts";

export interface NodeVolumePorts extends ApiDataPorts {
  readonly run: RunTool;
  /** `<root>/pods` and `<root>/plugins`. */
  readonly podsDir: string;
  readonly pluginsDir: string;
  /** Undefined: the gate ImageVolume is off. */
  readonly ensureImage: EnsureVolumeImage | undefined;
}

/** The kinds that the agent makes by itself. */
export function nodeKinds(ports: NodeVolumePorts): readonly VolumeKind[] {
  return [
    emptyDirKind(ports),
    hostPathKind,
    configMapKind(ports),
    secretKind(ports),
    downwardApiKind(ports),
    projectedKind(ports),
    localKind(ports),
    nfsKind(ports),
    ...(ports.ensureImage === undefined ? [] : [imageKind(ports.ensureImage)]),
  ];
}
