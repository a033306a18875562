// A private machine: a containerd of its own with network and images, made below one directory and removed without a trace.
export { baseImageNames, buildBaseImages, buildBusyboxImage } from "./base-images.ts";
export { createCgroup, removeCgroup } from "./cgroups.ts";
export { run } from "./command.ts";
export { importImages, lastLines, spawnDetached, startContainerd } from "./containerd.ts";
export { criHasImage, criStatus } from "./cri-calls.ts";
export { loadDockerImages, startDockerd } from "./docker.ts";
export { layoutOf, type MachineLayout } from "./layout.ts";
export { hostPort, type Loopback, loopbackOf } from "./loopback.ts";
export { claimStateDir, type MachineRuntime, readMarker } from "./marker.ts";
export { unmountBelow } from "./mounts.ts";
export { chooseSubnet, findCniPlugins, removeNetwork, subnetNumber } from "./network.ts";
export { type Blob, buildImage, type ImageRecipe, type OciImage } from "./oci-image.ts";
export {
  endsWithin,
  identify,
  isRunning,
  type MachineProcess,
  type MachineRole,
  machineProcesses,
  type ProcessIdentity,
  processOf,
  signalProcess,
  stopProcess,
} from "./processes.ts";
export type { TarEntry } from "./tar.ts";
export { removeMachine } from "./teardown.ts";
