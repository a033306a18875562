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
  findCniPlugins,
  hostPort,
  importImages,
  loadDockerImages,
  loopbackOf,
  type MachineLayout,
  type MachineRuntime,
  readMarker,
  startContainerd,
  startDockerd,
} from "./machine/index.ts";

/** What is to run the machine's pods: a runtime of its own, or one that is there. */
export type WantedRuntime =
  | { readonly type: "private" }
  | { readonly type: "docker" }
  | { readonly type: "external"; readonly endpoint: string };

/** Makes the machine's runtime ready for pods, with the images of the examples; returns its CRI endpoint. */
export async function prepareRuntime(
  layout: MachineLayout,
  wanted: WantedRuntime,
  io: CommandIo,
  progress: (step: string) => void,
): Promise<string> {
  const runtime = await claimedRuntime(layout, wanted);
  await createCgroup(layout.cgroupRoot);
  if (runtime.type === "docker") {
    progress("starting docker");
    await startDockerd(layout, runtime.subnet, io.clock, io.signal);
    await loadDockerImages(layout, await buildBaseImages(), io.signal);
    return endpointOf(layout, runtime);
  }
  return await prepareCri(layout, runtime, io, progress);
}

/** Where CRI is to be had once the machine runs. */
export function endpointOf(layout: MachineLayout, runtime: WantedRuntime): string {
  switch (runtime.type) {
    case "private":
      return layout.endpoint;
    case "docker":
      return layout.shimEndpoint;
    case "external":
      return runtime.endpoint;
  }
}

/** What an agent is told that brings its own shim in front of the machine's Docker. */
export async function dockerFlags(layout: MachineLayout): Promise<readonly string[]> {
  return [
    "--container-runtime=docker",
    `--docker-endpoint=unix://${layout.dockerSocket}`,
    `--container-runtime-endpoint=${layout.shimEndpoint}`,
    `--experimental-dockershim-root-directory=${layout.shimRoot}`,
    `--pod-infra-container-image=${baseImageNames.pause}`,
    `--cni-conf-dir=${layout.cniConfDir}`,
    `--cni-bin-dir=${await findCniPlugins()}`,
    `--streaming-bind-addr=${hostPort(loopbackOf(), 0)}`,
  ];
}

async function prepareCri(
  layout: MachineLayout,
  runtime: Exclude<MachineRuntime, { type: "docker" }>,
  io: CommandIo,
  progress: (step: string) => void,
): Promise<string> {
  const endpoint = endpointOf(layout, runtime);
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
async function claimedRuntime(layout: MachineLayout, wanted: WantedRuntime): Promise<MachineRuntime> {
  const marker = await readMarker(layout);
  if (marker === undefined) {
    const start = Number.parseInt(layout.network.slice(-4), 16);
    const runtime = wanted.type === "external" ? wanted : { type: wanted.type, subnet: await chooseSubnet(start) };
    return (await claimStateDir(layout, runtime)).runtime;
  }
  const [current, asked] = [described(marker.runtime), described(wanted)];
  if (current === asked) return marker.runtime;
  throw new Error(
    `the machine in ${layout.stateDir} uses ${current}, asked for was ${asked}; remove it first with "nodelet down"`,
  );
}

function described(runtime: WantedRuntime): string {
  switch (runtime.type) {
    case "private":
      return "a containerd of its own";
    case "docker":
      return "a docker of its own";
    case "external":
      return runtime.endpoint;
  }
}
