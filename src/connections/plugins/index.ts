// Plugins that register themselves through a socket directory: storage drivers (CSI), device plugins, DRA drivers.
export { type CsiCapabilities, CsiClient } from "./csi-client.ts";
export { CsiDrivers, type CsiNodeInfo, type CsiNodeRecords } from "./csi-drivers.ts";
export type { DevicePluginOptions, ListedDevice, PreferenceQuery } from "./device-plugin-client.ts";
export { DevicePlugins } from "./device-plugins.ts";
export { removeOldSockets, serveDeviceRegistration } from "./device-registration.ts";
export type { ClaimAnswer, ClaimRef, PreparedDevice, ReportedHealth } from "./dra-client.ts";
export { type DraDriver, DraDriverMissing, DraDrivers, mostDraDrivers } from "./dra-drivers.ts";
export {
  NodeExpandVolumeRequest,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  VolumeCapability,
  VolumeCapability_AccessMode_Mode,
  VolumeUsage_Unit,
} from "./gen/csi.ts";
export { ContainerAllocateResponse } from "./gen/device-plugin.ts";
export { type PluginHandler, PluginRegistration } from "./registration.ts";
export { PluginError } from "./rpc.ts";
