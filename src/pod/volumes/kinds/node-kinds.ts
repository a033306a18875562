import { type RunTool, WalkTurns } from "../../../connections/host/index.ts";
import type { VolumeFiles } from "../apart/volume-files.ts";
import { configMapKind, downwardApiKind, secretKind } from "./config-data.ts";
import { emptyDirKind } from "./empty-dir.ts";
import { hostPathKind } from "./host-path.ts";
import { imageKind } from "./image.ts";
import { StepError, type VolumeKind } from "./kind.ts";
import type { LiveContentPorts } from "./live-content.ts";
import { localKind } from "./local.ts";
import { nfsKind } from "./nfs.ts";
import { projectedKind } from "./projected.ts";
import { removeScratch } from "./scratch.ts";

export interface NodeVolumePorts extends Omit<LiveContentPorts, "walks"> {
  readonly run: RunTool;
  readonly files: VolumeFiles;
  /** `<root>/pods` and `<root>/plugins`. */
  readonly podsDir: string;
  readonly pluginsDir: string;
  /** The gate ImageVolume. */
  readonly withImages: boolean;
}

/** Cloning repositories for pods has let them run programs on the node; it is off in the kubelet, and not offered here. */
const gitRepoKind = ({ files }: Pick<NodeVolumePorts, "files">): VolumeKind => ({
  plugin: "kubernetes.io/git-repo",
  matches: (source) => source.type === "inline" && source.volume.gitRepo !== undefined,
  async setUp() {
    const message =
      "git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`";
    throw new StepError("NewMounter initialization", message);
  },
  tearDown: (place, signal) => removeScratch({ place, wrapped: true }, files.mountWork(place.uid, signal)),
});

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
