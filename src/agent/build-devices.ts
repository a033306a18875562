import { join } from "node:path";
import { DevicePlugins } from "../connections/plugins/index.ts";
import type { TaskScope } from "../ground/base/index.ts";
import type { PodUid } from "../ground/model/index.ts";
import { DeviceAdmission, DeviceManager, DeviceProvider, diskFiles, PluginListener } from "../pod/resources/index.ts";
import type { Foundation } from "./foundation.ts";

export interface DeviceParts {
  readonly manager: DeviceManager;
  readonly plugins: DevicePlugins;
  readonly admission: DeviceAdmission;
  /** Devices on these NUMA nodes, for pods that are not here yet. */
  provider(numa: ConstructorParameters<typeof DeviceProvider>[0], isHere: (uid: PodUid) => boolean): DeviceProvider;
  /** The same devices on trial: as they would be given out now, and nobody hears of it. */
  onTrial(): DevicesOnTrial;
  /** Whether plugins have ever been on this machine; true while that is not known. */
  wereThere(): boolean;
  start(scope: TaskScope): Promise<void>;
}

export type DevicesOnTrial = Pick<DeviceParts, "manager" | "admission" | "provider">;

/** The devices of this machine, and the plugins that offer them. */
export function buildDevices(base: Foundation): DeviceParts {
  const { clock, scope, wakes, process, metrics, rootDir } = base;
  const log = base.log.named("devices");
  // The kubelet's is a fixed one. Ours goes with the root directory, lest a second agent on the machine takes the plugins
  // of the first; who has moved the root directory and not the plugins says so.
  const directory = process.environment["NODELET_DEVICE_PLUGINS_DIR"] ?? join(rootDir, "device-plugins");
  const plugins = new DevicePlugins({ scope, clock, log });
  const plugin = (resource: string) => plugins.of(resource);
  const manager = new DeviceManager({
    clock,
    log,
    plugin,
    path: join(directory, "kubelet_internal_checkpoint"),
    files: diskFiles,
    onDecidable: wakes.decisions.tell,
    onStartable: wakes.startable.tell,
    onHealth: wakes.pod.tell,
    onAmounts: wakes.node.tell,
    onAllocated: metrics.devices.onAllocated,
  });
  plugins.registered.on((resource) => manager.registered(resource));
  plugins.listed.on((resource, devices) => manager.listed(resource, devices));
  plugins.lost.on((resource) => manager.lost(resource));
  wakes.left.on((uid) => manager.forget(uid));
  const admission = new DeviceAdmission(manager, { scope, clock, plugin, onDecidable: wakes.decisions.tell });
  const listener = new PluginListener({
    clock,
    log: base.log,
    health: base.health,
    directory,
    open: (signal) =>
      base.host.openDevicePlugins(directory, plugins, {
        log: base.log,
        onRegister: metrics.devices.onRegister,
        signal,
      }),
  });
  return {
    manager,
    plugins,
    admission,
    provider: providerOf(manager, admission),
    onTrial: () => {
      const tried = manager.onTrial();
      const trial = admission.onTrial(tried);
      return { manager: tried, admission: trial, provider: providerOf(tried, trial) };
    },
    wereThere: () => listener.wereThere,
    async start(running) {
      // Nobody is decided about before it is known who has what.
      await manager.load();
      await listener.open(running);
    },
  };
}

function providerOf(manager: DeviceManager, admission: DeviceAdmission): DeviceParts["provider"] {
  const preferred: DeviceAdmission["preferred"] = (uid, ...question) => admission.preferred(uid, ...question);
  return (numa, isHere) => new DeviceProvider(numa, { manager, preferred, isHere });
}
