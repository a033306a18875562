import { join } from "node:path";
import { DirectoryInUseError } from "../connections/host/index.ts";
import { DevicePlugins } from "../connections/plugins/index.ts";
import { explain, isAbort, type TaskScope, untilAborted } from "../ground/base/index.ts";
import type { PodUid } from "../ground/model/index.ts";
import { DeviceAdmission, DeviceManager, DeviceProvider, diskFiles } from "../pod/resources/index.ts";
import type { Foundation } from "./foundation.ts";
import type { OpenedPlugins } from "./inputs.ts";

export interface DeviceParts {
  readonly manager: DeviceManager;
  readonly plugins: DevicePlugins;
  readonly admission: DeviceAdmission;
  /** Devices on these NUMA nodes, for pods that are not here yet. */
  provider(numa: ConstructorParameters<typeof DeviceProvider>[0], isHere: (uid: PodUid) => boolean): DeviceProvider;
  /** Whether plugins have ever been on this machine; true while that is not known. */
  wereThere(): boolean;
  start(scope: TaskScope): Promise<void>;
}

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
  const preferred: DeviceAdmission["preferred"] = (uid, ...question) => admission.preferred(uid, ...question);
  const door = new PluginDoor(base, directory, plugins);
  return {
    manager,
    plugins,
    admission,
    provider: (numa, isHere) => new DeviceProvider(numa, { manager, preferred, isHere }),
    wereThere: () => door.wereThere,
    async start(running) {
      // Nobody is decided about before it is known who has what.
      await manager.load();
      await door.open(running);
    },
  };
}

const checkName = "device-plugin";
const retryMs = 5_000;

/** Where device plugins register. Pods that need none run without it, so it is tried until it opens. */
class PluginDoor {
  wereThere = true;
  readonly #base: Foundation;
  readonly #directory: string;
  readonly #plugins: DevicePlugins;
  #lastProblem: string | undefined;

  constructor(base: Foundation, directory: string, plugins: DevicePlugins) {
    this.#base = base;
    this.#directory = directory;
    this.#plugins = plugins;
  }

  /** Resolves after the first try. */
  async open(scope: TaskScope): Promise<void> {
    const first = await this.#try(scope.signal);
    scope.spawn("device plugins", async (signal) => {
      let opened = first;
      while (opened === undefined) {
        await this.#base.clock.sleep(retryMs, signal);
        opened = await this.#try(signal);
      }
      await using _ = opened;
      await untilAborted(signal);
    });
  }

  async #try(signal: AbortSignal): Promise<OpenedPlugins | undefined> {
    const { health, host, metrics, log } = this.#base;
    try {
      const { onRegister } = metrics.devices;
      const opened = await host.openDevicePlugins(this.#directory, this.#plugins, { log, onRegister, signal });
      this.wereThere = opened.wereThere;
      health.report(checkName, { state: "ok" });
      return opened;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const what = "device plugin registration gRPC server failed and no device plugins can register";
      const reason = `device registration error: ${what}: ${explain(error)}`;
      // Another agent serves this machine's plugins: nothing is broken.
      health.report(checkName, { state: error instanceof DirectoryInUseError ? "waiting" : "failed", reason });
      // Another agent may have them for days.
      if (reason !== this.#lastProblem)
        log.error("Device plugins can't register; trying again", error, { directory: this.#directory, retryMs });
      this.#lastProblem = reason;
      return undefined;
    }
  }
}
