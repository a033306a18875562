// Volumes of pods: what is wanted and what is mounted, the tasks between them, and one file per kind of volume.
export { CsiVolumes } from "./csi/csi-kind.ts";
export type { CsiCluster, CsiPorts, ResizeReport } from "./csi/ports.ts";
export type { Claims } from "./engine/claims.ts";
export type { OrphanReport } from "./engine/orphans.ts";
export { removePodDirectory } from "./engine/orphans.ts";
export { PodVolumes, type PodVolumesPorts } from "./engine/pod-volumes.ts";
export { VolumeError } from "./engine/volume-error.ts";
export type { MountReport } from "./engine/volume-task.ts";
export type { VolumeKind } from "./kinds/kind.ts";
export { type NodeVolumePorts, nodeKinds } from "./kinds/node-kinds.ts";
export { readVolumeFile } from "./mounting/sub-paths.ts";
export { LocalObjects, type LocalObjectsOptions } from "./objects/local-objects.ts";
export type { ObjectKind, ObjectKinds, ObjectRef, ObjectSource, Objects } from "./objects/ports.ts";
export { type ChangeDetection, objectsBy } from "./objects/strategy.ts";
export { type RequestToken, TokenManager } from "./objects/tokens.ts";
export type { TrustBundles } from "./objects/trust-bundles.ts";
export type { VolumeUsage } from "./stats/disk-usage.ts";
export type { MeasuredVolume } from "./stats/pod-usage.ts";
