import type { ApiDataPorts } from "./api-data.ts";
import { configMapKind, downwardApiKind, secretKind } from "./config-data.ts";
import { emptyDirKind } from "./empty-dir.ts";
import { hostPathKind } from "./host-path.ts";
import type { VolumeKind } from "./kind.ts";
import { projectedKind } from "./projected.ts";

export type NodeVolumePorts = ApiDataPorts;

/** The kinds that the agent makes by itself. */
export function localKinds(ports: NodeVolumePorts): readonly VolumeKind[] {
  return [
    emptyDirKind(ports),
    hostPathKind,
    configMapKind(ports),
    secretKind(ports),
    downwardApiKind(ports),
    projectedKind(ports),
  ];
}
