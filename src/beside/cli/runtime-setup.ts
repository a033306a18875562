import { mapAtMost, messageOf } from "../../ground/base/index.ts";
import type { CommandIo } from "./io.ts";
import {
  baseImageNames,
  buildBaseImages,
  chooseSubnet,
  claimStateDir,
  createCgroup,
  criHasImage,
  criStatus,
  importImages,
  type MachineLayout,
  type MachineRuntime,
  readMarker,
  startContainerd,
} from "./machine/index.ts";

/** Makes the machine's runtime ready for pods, with the images of the examples; returns its CRI endpoint. */
export async function prepareRuntime(
  layout: MachineLayout,
  externalEndpoint: string | undefined,
  io: CommandIo,
  progress: (step: string) => void,
): Promise<string> {
  const runtime = await claimedRuntime(layout, externalEndpoint);
  await createCgroup(layout.cgroupRoot);
  const endpoint = runtime.type === "private" ? layout.endpoint : runtime.endpoint;
  if (runtime.type === "private") {
    progress("starting containerd");
    await startContainerd(layout, runtime.subnet, io.clock, io.signal);
  } else {
    const status = await criStatus(endpoint, io.clock);
    if (!status.answers)
      throw new Error(`no container runtime answers: ${messageOf(status.error)}`, { cause: status.error });
  }
  const wanted = Object.values(baseImageNames);
  const present = await mapAtMost(wanted.length, wanted, (name) => criHasImage(endpoint, name, io.clock));
  if (present.includes(false)) {
    progress(`making images from busybox: ${wanted.join(", ")}`);
    await importImages(layout, endpoint, await buildBaseImages(), io.clock, io.signal);
  }
  return endpoint;
}

/** The runtime this machine was made with; a new machine takes what is asked for. */
async function claimedRuntime(layout: MachineLayout, externalEndpoint: string | undefined): Promise<MachineRuntime> {
  const marker = await readMarker(layout);
  if (marker === undefined) {
    const start = Number.parseInt(layout.network.slice(-4), 16);
    const runtime: MachineRuntime =
      externalEndpoint === undefined
        ? { type: "private", subnet: await chooseSubnet(start) }
        : { type: "external", endpoint: externalEndpoint };
    return (await claimStateDir(layout, runtime)).runtime;
  }
  const { runtime } = marker;
  const current = runtime.type === "external" ? runtime.endpoint : undefined;
  if (current !== externalEndpoint) {
    throw new Error(
      `the machine in ${layout.stateDir} uses ${current ?? "a containerd of its own"}, ` +
        `asked for was ${externalEndpoint ?? "a containerd of its own"}; remove it first with "nodelet down"`,
    );
  }
  return runtime;
}
