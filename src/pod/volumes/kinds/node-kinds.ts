import { type RunTool, WalkTurns } from "../../../connections/host/index.ts";
import type { VolumeFiles } from "../apart/volume-files.ts";
import { configMapKind } from "./config-map.ts";
import { downwardApiKind } from "./downward-api.ts";
import { emptyDirKind } from "./empty-dir.ts";
import { gitRepoKind } from "./git-repo.ts";
import { hostPathKind } from "./host-path.ts";
import { imageKind } from "./image.ts";
import type { VolumeKind } from "./kind.ts";
import type { LiveContentPorts } from "./live-content.ts";
import { localKind } from "./local.ts";
import { nfsKind } from "./nfs.ts";
import { projectedKind } from "./projected.ts";
import { secretKind } from "./secret.ts";

export interface NodeVolumePorts extends Omit<LiveContentPorts, "walks"> {
  readonly run: RunTool;
  readonly files: VolumeFiles;
  /** `<root>/pods` and `<root>/plugins`. */
  readonly podsDir: string;
  readonly pluginsDir: string;
  /** The gate ImageVolume. */
  readonly withImages: boolean;
}

/** The kinds that the agent makes by itself. */
export function nodeKinds(given: NodeVolumePorts): readonly VolumeKind[] {
  const ports = { ...given, walks: new WalkTurns(given.clock) };
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
  ];
}
