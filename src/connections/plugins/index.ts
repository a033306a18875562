// Doors to plugins that register themselves through a socket directory: storage drivers (CSI) and, later, others.
export { type CsiCapabilities, CsiClient } from "./csi-client.ts";
export { CsiDrivers, type CsiNodeInfo, type CsiNodeRecords } from "./csi-drivers.ts";
export { CsiNodeUpkeep, type NodeObjects } from "./csi-node-records.ts";
export {
  NodeExpandVolumeRequest,
  NodePublishVolumeRequest,
  NodeStageVolumeRequest,
  VolumeCapability,
  VolumeCapability_AccessMode_Mode,
  VolumeUsage_Unit,
} from "./gen/csi.ts";
export { type Plugin, type PluginHandler, PluginRegistration, type PluginRegistrationPorts } from "./registration.ts";
export { type PluginCode, PluginError } from "./rpc.ts";
