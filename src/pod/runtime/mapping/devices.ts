import type { CDIDevice, Device } from "../../../connections/cri/index.ts";
import type { Container } from "../../../ground/model/index.ts";
import type { DeviceGrants, PodVolume } from "./context.ts";
import { ConfigError } from "./errors.ts";

/** Devices of plugins, then volumes that the container uses as raw block devices. */
export function containerDevices(
  container: Container,
  grants: DeviceGrants,
  volumes: ReadonlyMap<string, PodVolume>,
): Device[] {
  const ofVolumes = (container.volumeDevices ?? []).map(({ name, devicePath }) => {
    if (!devicePath.startsWith("/")) {
      throw new ConfigError(`error DevicePath \`${devicePath}\` must be an absolute path`);
    }
    const volume = volumes.get(name);
    if (volume?.type !== "block") {
      throw new ConfigError(`cannot find volume "${name}" to pass into container "${container.name}"`);
    }
    return { containerPath: devicePath, hostPath: volume.devicePath, permissions: volume.readOnly ? "r" : "mrw" };
  });
  return [...grants.devices, ...ofVolumes];
}

export function cdiDevices({ cdiDevices: names }: DeviceGrants): CDIDevice[] {
  return [...new Set(names)].map((name) => ({ name }));
}
