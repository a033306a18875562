import { readdir, readFile, readlink, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { aFewAtOnce, type Clock, hasCode, ifThere, mapAtMost, never } from "../../../ground/base/index.ts";
import { cgroupPids, removeCgroup } from "./cgroups.ts";
import { criRemoveSandbox, criSandboxes } from "./cri-calls.ts";
import type { MachineLayout } from "./layout.ts";
import { readMarker } from "./marker.ts";
import { unmountBelow } from "./mounts.ts";
import { removeNetwork } from "./network.ts";
import { type MachineRole, machineProcesses, signalPid, stopProcess } from "./processes.ts";

const containerLogLinks = "/var/log/containers";

/** What containerd's files tell of a container: enough to end it when neither containerd nor its shim lives. */
interface Container {
  readonly cgroup: string | undefined;
  /** The shim's socket outside the state directory. */
  readonly shimSocket: string | undefined;
}

export interface TeardownSettings {
  /** How long containers may take to end by themselves. */
  readonly graceMs: number;
  readonly report: (step: string) => void;
}

/**
 * Ends everything of the machine and removes what it made, in or outside its directory; works from what it finds, so
 * it may be run again after it failed or when parts have crashed. Returns false when there was nothing.
 */
export async function removeMachine(layout: MachineLayout, settings: TeardownSettings, clock: Clock): Promise<boolean> {
  const marker = await readMarker(layout);
  if (marker === undefined && (await machineProcesses(layout)).length === 0) return false;

  // First those who would start things again, then the containers, and last what they stood on.
  settings.report("stopping the agent and the API server");
  await stopRole(layout, "agent", 20_000, clock);
  await stopRole(layout, "api-keeper", 5_000, clock);
  await stopRole(layout, "api", 5_000, clock);
  settings.report("stopping containers");
  if (marker?.runtime.type === "external") await removeExternalPods(layout, marker.runtime.endpoint, clock);
  const containers = await readContainers(layout);
  await endContainers(layout, containers, settings.graceMs, clock);
  settings.report(marker?.runtime.type === "docker" ? "stopping docker" : "stopping containerd");
  await stopRole(layout, "dockerd", 10_000, clock);
  await stopRole(layout, "containerd", 10_000, clock);
  await stopRole(layout, "shim", 0, clock);
  for (const { cgroup } of containers) if (cgroup !== undefined) await removeCgroup(cgroup, clock);
  await removeCgroup(layout.cgroupRoot, clock);

  settings.report("removing mounts, network and files");
  await unmountBelow(layout.stateDir);
  await removeNetwork(layout);
  for (const { shimSocket } of containers) if (shimSocket !== undefined) await rm(shimSocket, { force: true });
  await removeLogLinks(layout.podLogsDir);
  await removeStateDir(layout);
  return true;
}

/**
 * Removes our pods, and only ours, from a runtime that others may use too: those the agent has a directory for. Their
 * cgroups lie below the machine's own and go with it.
 */
async function removeExternalPods(layout: MachineLayout, endpoint: string, clock: Clock): Promise<void> {
  const ours = new Set(await ifThere(readdir(join(layout.agentRoot, "pods")), []));
  for (const { id, podUid } of await criSandboxes(endpoint, clock)) {
    if (ours.has(podUid)) await criRemoveSandbox(endpoint, id, clock);
  }
}

/** Each may take its whole grace. */
const processesAtOnce = 64;

async function stopRole(layout: MachineLayout, role: MachineRole, graceMs: number, clock: Clock): Promise<void> {
  const processes = (await machineProcesses(layout)).filter((process) => process.role === role);
  await mapAtMost(processesAtOnce, processes, (process) => stopProcess(process, graceMs, clock));
}

async function endContainers(
  layout: MachineLayout,
  containers: readonly Container[],
  graceMs: number,
  clock: Clock,
): Promise<void> {
  const cgroups = [layout.cgroupRoot, ...containers.flatMap(({ cgroup }) => cgroup ?? [])];
  const running = async (): Promise<readonly number[]> => [
    ...new Set((await mapAtMost(aFewAtOnce, cgroups, cgroupPids)).flat()),
  ];
  if (graceMs > 0) {
    for (const pid of await running()) signalPid(pid, "SIGTERM");
    const deadline = clock.monotonic() + graceMs;
    while ((await running()).length > 0 && clock.monotonic() < deadline) await clock.sleep(50, never);
  }
  for (const pid of await running()) signalPid(pid, "SIGKILL");
}

async function readContainers(layout: MachineLayout): Promise<readonly Container[]> {
  const tasks = join(layout.containerdRun, "io.containerd.runtime.v2.task");
  const containers: Container[] = [];
  for (const namespace of await ifThere(readdir(tasks), [])) {
    for (const id of await ifThere(readdir(join(tasks, namespace)), []))
      containers.push(await readBundle(join(tasks, namespace, id)));
  }
  return containers;
}

async function readBundle(bundle: string): Promise<Container> {
  const spec: unknown = JSON.parse((await ifThere(readFile(join(bundle, "config.json"), "utf8"))) || "{}");
  const address = await ifThere(readFile(join(bundle, "address"), "utf8"));
  return {
    cgroup: cgroupOf(spec),
    shimSocket: address?.startsWith("unix:///run/") ? address.slice("unix://".length).trim() : undefined,
  };
}

function cgroupOf(spec: unknown): string | undefined {
  if (typeof spec !== "object" || spec === null || !("linux" in spec)) return undefined;
  const { linux } = spec;
  if (typeof linux !== "object" || linux === null || !("cgroupsPath" in linux)) return undefined;
  const { cgroupsPath } = linux;
  return typeof cgroupsPath === "string" && cgroupsPath.length > 1 ? cgroupsPath : undefined;
}

/** Removes the marker last: as long as there is anything else, a next try must know the directory as ours. */
async function removeStateDir(layout: MachineLayout): Promise<void> {
  for (const name of await ifThere(readdir(layout.stateDir), [])) {
    const path = join(layout.stateDir, name);
    if (path !== layout.markerFile) await removeAll(path);
  }
  await rm(layout.stateDir, { recursive: true, force: true });
}

/** Pods may have left paths that are longer than the kernel takes, which Node can't remove. */
async function removeAll(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch (error) {
    if (!hasCode(error, "ENAMETOOLONG")) throw error;
    const { removeTree } = await import("../../../connections/host/index.ts");
    await removeTree(path);
  }
}

/** The agent's links from the directory that log collectors read; ours point into the state directory. */
async function removeLogLinks(podLogsDir: string): Promise<void> {
  for (const name of await ifThere(readdir(containerLogLinks), [])) {
    const link = join(containerLogLinks, name);
    const target = await readlink(link).catch(() => "");
    if (target.startsWith(`${podLogsDir}/`)) await unlink(link);
  }
}
