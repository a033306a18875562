import { rm } from "node:fs/promises";
import {
  baseImageNames,
  buildBaseImages,
  claimStateDir,
  createCgroup,
  endsWithin,
  importImages,
  layoutOf,
  type MachineLayout,
  type MachineProcess,
  machineProcesses,
  type OciImage,
  removeCgroup,
  removeNetwork,
  signalProcess,
  startContainerd as startMachineContainerd,
  stopProcess,
  subnetNumber,
  unmountBelow,
} from "../../src/beside/cli/machine/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { type AfterUs, runAfterUs } from "./after-us.ts";
import { claimSlot, releaseSlot, type Slot, sweepSlots } from "./slots.ts";

export interface TestContainerd extends AsyncDisposable {
  /** CRI endpoint, "unix:///…". */
  readonly endpoint: string;
  readonly socketPath: string;
  /** All of this machine's files; the test may keep its own below it, they go with it. */
  readonly stateDir: string;
  readonly layout: MachineLayout;
  readonly cniSubnet: string;
  /** An existing cgroup for the test's pods; it and all below it are removed at the end. */
  readonly cgroupRoot: string;
  readonly images: typeof baseImageNames;
  importImage(image: OciImage): Promise<void>;
  /** Stops containerd if it runs, and starts it again; containers go on running. */
  restart(): Promise<void>;
  /** Ends containerd as a crash would; `restart` brings it back. */
  kill9(): Promise<void>;
  /** Leaves what a loss of power would: the files on disk; no process, mount, cgroup or network. `restart` brings it back. */
  losePower(): Promise<void>;
}

const forever = new AbortController().signal;

/**
 * Starts a containerd of its own for this test, with network and the images of `baseImageNames`. Leaving it removes
 * everything; when the test process dies first, a watcher does that.
 */
export async function startContainerd(
  /** What has to be there before containerd is. */
  prepare: (layout: MachineLayout) => void = () => {},
): Promise<TestContainerd> {
  await sweepSlots();
  const slot = await claimSlot();
  const watcher = watchSlot(slot);
  const layout = layoutOf(slot.machineDir);
  const cniSubnet = subnetNumber(slot.number);
  const start = (): Promise<MachineProcess> => startMachineContainerd(layout, cniSubnet, systemClock, forever);
  let process: MachineProcess;
  const dispose = async (): Promise<void> => {
    await releaseSlot(slot);
    await watcher.dismiss();
  };
  try {
    await claimStateDir(layout, { type: "private", subnet: cniSubnet });
    await createCgroup(layout.cgroupRoot);
    prepare(layout);
    process = await start();
    await importImages(layout, layout.endpoint, await buildBaseImages(), systemClock, forever);
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    endpoint: layout.endpoint,
    socketPath: layout.containerdSocket,
    stateDir: layout.stateDir,
    layout,
    cniSubnet,
    cgroupRoot: layout.cgroupRoot,
    images: baseImageNames,
    importImage: (image) => importImages(layout, layout.endpoint, [image], systemClock, forever),
    async restart() {
      await stopProcess(process, 10_000, systemClock);
      process = await start();
    },
    async kill9() {
      await signalProcess(process, "SIGKILL");
      await endsWithin(process, 10_000, systemClock);
    },
    async losePower() {
      for (const one of await machineProcesses(layout)) {
        if (one.role !== "containerd" && one.role !== "shim") continue;
        await signalProcess(one, "SIGKILL");
        await endsWithin(one, 10_000, systemClock);
      }
      await removeCgroup(layout.cgroupRoot, systemClock);
      await createCgroup(layout.cgroupRoot);
      await unmountBelow(layout.stateDir);
      await removeNetwork(layout);
      for (const directory of [layout.containerdRun, layout.runcRoot]) await rm(directory, { recursive: true });
    },
    [Symbol.asyncDispose]: dispose,
  };
}

/** Removes the slot when we end without having done so. */
export function watchSlot(slot: Slot): AfterUs {
  return runAfterUs("./reap.ts", String(slot.number));
}
