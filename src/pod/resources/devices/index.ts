// Devices that plugins offer: which there are, who has them, and what their containers get.
export { DeviceAdmission } from "./device-admission.ts";
export { DeviceManager } from "./device-manager.ts";
export { DeviceProvider } from "./device-provider.ts";
export { deviceReport } from "./device-report.ts";
export { type OpenedPlugins, PluginListener } from "./plugin-listener.ts";
