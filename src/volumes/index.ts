// Volumes of pods: one file per kind, and the part that makes and removes them.
export { emptyDirKind } from "./empty-dir.ts";
export { hostPathKind } from "./host-path.ts";
export type { VolumeKind } from "./kind.ts";
export { PodVolumes } from "./pod-volumes.ts";
export { readVolumeFile } from "./sub-paths.ts";
