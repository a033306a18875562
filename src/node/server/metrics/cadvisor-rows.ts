import { stat } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import {
  type CgroupDetails,
  type InterfaceUsage,
  mostDescriptors,
  readOpenFileLimit,
  readOpenFiles,
} from "../../../connections/host/index.ts";
import { labelText } from "../../../ground/metrics/index.ts";
import { qosCgroup } from "../../../ground/model/index.ts";
import { type FileSystemFigures, fileSystemFigures } from "../stats/file-system-figures.ts";
import type { NodeStatistics } from "../stats/node-stats.ts";
import type { UsageSample } from "../stats/usage-sampler.ts";

/** One cgroup with all that is told of it. */
export interface CgroupRow {
  /** id, name, image, pod, namespace, container: empty where they do not apply. */
  readonly labels: string;
  readonly sample: UsageSample;
  readonly details: CgroupDetails;
  readonly startedAt: number | undefined;
  readonly network: readonly InterfaceUsage[];
  /** Of a container: processes are directly in its cgroup, and nothing is below. */
  readonly processes: ProcessCounts | undefined;
  /** Of the whole machine. */
  readonly disk: RootDisk | undefined;
}

export interface ProcessCounts {
  readonly processes: number;
  readonly openFiles: number;
  readonly sockets: number;
  readonly openFileLimit: number | undefined;
}

export interface RootDisk {
  readonly major: number;
  readonly minor: number;
  readonly fileSystem: FileSystemFigures;
}

const rowsAtOnce = 20;

/** All cgroups that are told of: the machine, what the agent knows by name, pods, sandboxes and containers. */
export async function cadvisorRows(
  statistics: NodeStatistics,
  sandboxImage: string,
  signal: AbortSignal,
): Promise<readonly CgroupRow[]> {
  const { node, system, pods } = await statistics.figures(signal);
  const { cgroups, naming, settings } = statistics.ports;
  const rows: CgroupRow[] = [];
  const told = new Set<string>();
  const add = async (sample: UsageSample, labels: RowLabels, more: More = {}): Promise<void> => {
    // A sample that the runtime told of has no cgroup to look into; several parts may live in one.
    if (sample.path === "" || told.has(sample.path)) return;
    told.add(sample.path);
    rows.push({
      labels: labelText({ ...noLabels, ...labels, id: sample.path }),
      sample,
      details: cgroups.details(sample.path),
      startedAt: more.startedAt ?? cgroups.createdAt(sample.path),
      network: more.network ?? [],
      processes: more.processes,
      disk: more.disk,
    });
    signal.throwIfAborted();
    // Reading never waits, so others get their turn between.
    if (rows.length % rowsAtOnce === 0) await setImmediate();
  };
  await add(node, {}, { network: statistics.nodeNetwork(), disk: await rootDisk(settings.rootDir) });
  for (const { sample } of system) await add(sample, {});
  if (naming.perQos) {
    for (const qos of ["Burstable", "BestEffort"] as const) {
      const path = qosCgroup(naming, qos);
      if (cgroups.exists(path)) await add(statistics.sample(path), {});
    }
  }
  for (const pod of pods) {
    const labels = { namespace: pod.namespace, pod: pod.name };
    if (pod.sample !== undefined) await add(pod.sample, labels);
    if (pod.sandbox?.path !== undefined) {
      const { id: name, path } = pod.sandbox;
      const network = statistics.networkOf(pod);
      const processes = await processCounts(statistics, path);
      await add(statistics.sample(path), { ...labels, name, image: sandboxImage }, { network, processes });
    }
    for (const { name: container, id: name, image, startedAt, sample } of pod.containers) {
      if (sample === undefined) continue;
      const processes = await processCounts(statistics, sample.path);
      await add(sample, { ...labels, container, name, image }, { startedAt, processes });
    }
  }
  return rows;
}

type More = Partial<Pick<CgroupRow, "startedAt" | "network" | "processes" | "disk">>;

type RowLabels = Readonly<Partial<Record<"container" | "image" | "name" | "namespace" | "pod", string>>>;

const noLabels = { container: "", image: "", name: "", namespace: "", pod: "" };

const descriptorsAtOnce = 200;
/** So many processes of a container are asked for their files at the most, and so many descriptors in all of them. */
const mostProcesses = 1_000;

/** Containers decide how many processes and files they have, so the agent gets to other work between. */
async function processCounts({ ports }: NodeStatistics, path: string): Promise<ProcessCounts> {
  const { hostRoot } = ports.settings;
  const pids = ports.cgroups.processes(path);
  let openFiles = 0;
  let sockets = 0;
  let looked = 0;
  let lookedBefore = 0;
  for (const pid of pids.slice(0, mostProcesses)) {
    const most = Math.max(1, mostDescriptors - looked);
    const open = readOpenFiles(pid, hostRoot, most);
    openFiles += open.files;
    sockets += open.sockets;
    looked += Math.min(open.files, most);
    if (looked - lookedBefore < descriptorsAtOnce) continue;
    lookedBefore = looked;
    await setImmediate();
  }
  const [first] = pids;
  return {
    processes: pids.length,
    openFiles,
    sockets,
    openFileLimit: first === undefined ? undefined : readOpenFileLimit(first, hostRoot),
  };
}

async function rootDisk(path: string): Promise<RootDisk> {
  const [{ dev }, fileSystem] = await Promise.all([stat(path), fileSystemFigures(path)]);
  return { major: (dev >> 8) & 0xfff, minor: (dev & 0xff) | ((dev >> 12) & 0xfff00), fileSystem };
}
