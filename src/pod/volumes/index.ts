// Volumes of pods: what is wanted and what is mounted, the tasks between them, and one file per kind of volume.

export type { GrowthReports, ResizeReport } from "./attaching/growth.ts";
export { attachmentsOf, VolumesInUse } from "./attaching/volumes-in-use.ts";
export { claimsOf, csiClusterOf } from "./cluster-storage.ts";
export { CsiVolumes } from "./csi/csi-kind.ts";
export type { CsiCluster } from "./csi/ports.ts";
export { VolumeFiles } from "./file-processes/volume-files.ts";
export type { VolumeKind } from "./kinds/kind.ts";
export { MountLabels } from "./kinds/selinux.ts";
export type { Claims } from "./manager/claims.ts";
export type { ForeseenVolume } from "./manager/foresee-volume.ts";
export type { OrphanedDirectoriesReport } from "./manager/orphaned-directories.ts";
export { removePodDirectory } from "./manager/orphaned-directories.ts";
export { sweepOrphanedDirectories } from "./manager/orphaned-directories-loop.ts";
export { PodVolumes, type PodVolumesPorts } from "./manager/pod-volumes.ts";
export { VolumeError } from "./manager/volume-error.ts";
export type { MountReport } from "./manager/volume-task.ts";
export { readVolumeFile } from "./mounting/sub-paths.ts";
export { type NodeVolumePorts, nodeKinds } from "./node-kinds.ts";
export { LocalObjects } from "./objects/local-objects.ts";
export type { ObjectKind, ObjectKinds, ObjectSource, Objects } from "./objects/ports.ts";
export { type RequestToken, TokenManager } from "./objects/service-account-tokens.ts";
export { type ChangeDetection, objectsBy } from "./objects/strategy.ts";
export { TrustBundleInformer } from "./objects/trust-bundle-informer.ts";
export type { TrustBundles } from "./objects/trust-bundles.ts";
