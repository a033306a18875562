import type { VolumeFiles } from "../file-processes/volume-files.ts";
import { StepError, type VolumeKind } from "./kind.ts";
import { removeScratch } from "./scratch.ts";

/** Cloning repositories for pods has let them run programs on the node; it is off in the kubelet, and not offered here. */
export const gitRepoKind = ({ files }: { readonly files: VolumeFiles }): VolumeKind => ({
  plugin: "kubernetes.io/git-repo",
  matches: (source) => source.type === "inline" && source.volume.gitRepo !== undefined,
  async setUp() {
    const message =
      "git-repo volume plugin has been disabled; if necessary, it may be re-enabled by enabling the feature-gate `GitRepoVolumeDriver`";
    throw new StepError("NewMounter initialization", message);
  },
  tearDown: (place, signal) => removeScratch({ place, wrapped: true }, files.mountWork(place.uid, signal)),
});
