import { containersOf, type IdentifiedPod, type Volume } from "../../../ground/model/index.ts";

export interface ContainerVolume {
  readonly volume: Volume;
  readonly isMounted: boolean;
  readonly isDevice: boolean;
}

/** The volumes that any container uses; others are never made. */
export function volumesOfContainers(pod: IdentifiedPod): readonly ContainerVolume[] {
  const mounted = new Set<string>();
  const devices = new Set<string>();
  for (const { container } of containersOf(pod)) {
    for (const { name } of container.volumeMounts ?? []) mounted.add(name);
    for (const { name } of container.volumeDevices ?? []) devices.add(name);
  }
  return (pod.spec.volumes ?? [])
    .map((volume) => ({ volume, isMounted: mounted.has(volume.name), isDevice: devices.has(volume.name) }))
    .filter(({ isMounted, isDevice }) => isMounted || isDevice);
}
