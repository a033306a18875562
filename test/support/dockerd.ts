import {
  baseImageNames,
  buildBaseImages,
  claimStateDir,
  createCgroup,
  endsWithin,
  findCniPlugins,
  layoutOf,
  loadDockerImages,
  type MachineLayout,
  type MachineProcess,
  type OciImage,
  signalProcess,
  startDockerd,
  stopProcess,
  subnetNumber,
} from "../../src/beside/cli/machine/index.ts";
import { defaultSettings, type ShimSettings } from "../../src/beside/dockershim/index.ts";
import { never, systemClock } from "../../src/ground/base/index.ts";
import { watchSlot } from "./containerd.ts";
import { claimSlot, releaseSlot, sweepSlots } from "./slots.ts";

export interface TestDocker extends AsyncDisposable {
  readonly layout: MachineLayout;
  readonly images: typeof baseImageNames;
  /** For a shim in front of it. */
  readonly shimSettings: ShimSettings;
  /** The same as flags of `nodelet dockershim`. */
  readonly shimFlags: readonly string[];
  load(image: OciImage): Promise<void>;
  /** Stops dockerd if it runs, and starts it again; containers go on running. */
  restart(): Promise<void>;
  /** Ends dockerd as a crash would; `restart` brings it back. */
  kill9(): Promise<void>;
}

/** Starts a dockerd of its own for this test, with the images of `baseImageNames`; it goes with all it made. */
export async function startDocker(): Promise<TestDocker> {
  await sweepSlots();
  const slot = await claimSlot();
  const watcher = watchSlot(slot);
  const layout = layoutOf(slot.machineDir);
  const subnet = subnetNumber(slot.number);
  const start = (): Promise<MachineProcess> => startDockerd(layout, subnet, systemClock, never);
  const dispose = async (): Promise<void> => {
    await releaseSlot(slot);
    await watcher.dismiss();
  };
  let daemon: MachineProcess;
  let binDir: string;
  try {
    await claimStateDir(layout, { type: "docker", subnet });
    await createCgroup(layout.cgroupRoot);
    binDir = await findCniPlugins();
    daemon = await start();
    await loadDockerImages(layout, await buildBaseImages(), never);
  } catch (error) {
    await dispose();
    throw error;
  }
  const shimSettings: ShimSettings = {
    ...defaultSettings,
    dockerEndpoint: `unix://${layout.dockerSocket}`,
    endpoint: layout.shimEndpoint,
    rootDir: layout.shimRoot,
    sandboxImage: baseImageNames.pause,
    network: { plugin: "cni", confDir: layout.cniConfDir, binDirs: [binDir] },
  };
  return {
    layout,
    images: baseImageNames,
    shimSettings,
    shimFlags: [
      `--docker-endpoint=${shimSettings.dockerEndpoint}`,
      `--container-runtime-endpoint=${shimSettings.endpoint}`,
      `--experimental-dockershim-root-directory=${shimSettings.rootDir}`,
      `--pod-infra-container-image=${shimSettings.sandboxImage}`,
      `--cni-conf-dir=${layout.cniConfDir}`,
      `--cni-bin-dir=${binDir}`,
    ],
    load: (image) => loadDockerImages(layout, [image], never),
    async restart() {
      await stopProcess(daemon, 20_000, systemClock);
      daemon = await start();
    },
    async kill9() {
      await signalProcess(daemon, "SIGKILL");
      await endsWithin(daemon, 10_000, systemClock);
    },
    [Symbol.asyncDispose]: dispose,
  };
}
