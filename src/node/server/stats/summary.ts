import { readBootTime, readPidLimit, readTaskCount } from "../../../connections/host/index.ts";
import { apiTime, type PodUid } from "../../../ground/model/index.ts";
import type { PodFiles } from "./log-figures.ts";
import type { NodeStatistics } from "./node-stats.ts";
import type { VolumeReading } from "./ports.ts";
import type { NodeDisk, RuntimeFileSystem } from "./runtime-disk.ts";
import { fsStats, ioPart, networkStats, timeText, usageParts, volumeStats, wholeFsStats } from "./summary-parts.ts";
import type { ContainerStats, FsStats, PodStats, Summary } from "./summary-types.ts";
import type { ContainerFigures, NodeFigures, PodFigures } from "./usage-figures.ts";
import type { PodVolumeFigures } from "./volume-figures.ts";

/** What /stats/summary answers. */
export async function summaryOf(statistics: NodeStatistics, signal: AbortSignal): Promise<Summary> {
  const figures = await statistics.figuresWithRates(signal);
  const { node, pods, at } = figures;
  const [disk, files, volumes] = await Promise.all([
    statistics.disk(signal),
    statistics.files(signal),
    statistics.volumes(pods, signal),
  ]);
  const { hostRoot, nodeName } = statistics.ports.settings;
  const fileSystemOf = (runtime: RuntimeFileSystem | undefined): FsStats | undefined =>
    runtime && fsStats(runtime.fileSystem, runtime.used, disk.at);
  return {
    node: {
      nodeName,
      systemContainers: systemContainers(statistics, figures),
      startTime: timeText(readBootTime(hostRoot)),
      ...usageParts(node),
      ...ioPart(node),
      network: networkStats(statistics.nodeNetwork(), at),
      fs: wholeFsStats(disk.root, disk.at),
      runtime: { imageFs: fileSystemOf(disk.images), containerFs: fileSystemOf(disk.containers) },
      rlimit: {
        time: apiTime(at),
        maxpid: await readPidLimit(hostRoot === "" ? "/" : hostRoot),
        curproc: readTaskCount(hostRoot),
      },
    },
    pods: orNull(pods.map((pod) => podStats(pod, statistics, { at, disk, files, volumes }))),
  };
}

/** The same with processor, memory and swap alone. */
export async function shortSummaryOf(statistics: NodeStatistics, signal: AbortSignal): Promise<Summary> {
  return shortSummary(statistics, await statistics.figuresWithRates(signal));
}

/** The short one with the counters of this moment; whoever asks twice reckons rates by itself. */
export async function presentSummaryOf(statistics: NodeStatistics, signal: AbortSignal): Promise<Summary> {
  return shortSummary(statistics, await statistics.figuresNow(signal));
}

function shortSummary(statistics: NodeStatistics, figures: NodeFigures): Summary {
  const { node, pods } = figures;
  const { settings, cgroups } = statistics.ports;
  return {
    node: {
      nodeName: settings.nodeName,
      systemContainers: systemContainers(statistics, figures),
      startTime: timeText(cgroups.createdAt("/") ?? 0),
      ...usageParts(node),
    },
    pods: orNull(
      pods.map((pod) => ({ ...head(pod), containers: pod.containers.map(containerHead), ...usageParts(pod.sample) })),
    ),
  };
}

function podStats(
  pod: PodFigures,
  statistics: NodeStatistics,
  all: {
    readonly at: number;
    readonly disk: NodeDisk;
    readonly files: ReadonlyMap<PodUid, PodFiles>;
    readonly volumes: ReadonlyMap<PodUid, PodVolumeFigures>;
  },
): PodStats {
  const { disk, at } = all;
  const files = all.files.get(pod.uid);
  const measured = all.volumes.get(pod.uid);
  const processes = pod.containers.map(({ sample }) =>
    sample === undefined || sample.path === "" ? 0 : statistics.ports.cgroups.processes(sample.path).length,
  );
  return {
    ...head(pod),
    containers: pod.containers.map((container) => ({
      ...containerHead(container),
      ...ioPart(container.sample),
      ...containerDisk(container, disk, files),
    })),
    ...usageParts(pod.sample),
    ...ioPart(pod.sample),
    network: networkStats(statistics.networkOf(pod), at),
    ...(measured !== undefined &&
      measured.volumes.length > 0 && { volume: measured.volumes.map((volume) => volumeStats(volume, measured.at)) }),
    "ephemeral-storage": ephemeralStorage(pod, disk, files, measured?.volumes ?? []),
    process_stats: { process_count: processes.reduce((sum, count) => sum + count, 0) },
  };
}

function systemContainers({ ports }: NodeStatistics, { system }: NodeFigures): readonly ContainerStats[] {
  return system.map(({ name, sample }) => ({
    name,
    startTime: timeText(name === "kubelet" ? ports.settings.startedAt : (ports.cgroups.createdAt(sample.path) ?? 0)),
    ...usageParts(sample),
  }));
}

function head({ name, namespace, uid, startedAt }: PodFigures) {
  return { podRef: { name, namespace, uid }, startTime: timeText(startedAt) };
}

function containerHead({ name, startedAt, sample }: ContainerFigures): ContainerStats {
  return { name, startTime: timeText(startedAt), ...usageParts(sample) };
}

function orNull<Item>(items: readonly Item[]): readonly Item[] | null {
  return items.length === 0 ? null : items;
}

function containerDisk(
  { id, name }: ContainerFigures,
  disk: NodeDisk,
  files: PodFiles | undefined,
): { readonly rootfs?: FsStats; readonly logs?: FsStats } {
  const layer = disk.layers.get(id);
  const logs = files?.logs.get(name);
  return {
    ...(layer && disk.containers && { rootfs: fsStats(disk.containers.fileSystem, layer, disk.at) }),
    ...(logs && { logs: fsStats(disk.root, logs, disk.at) }),
  };
}

/** What the pod takes of the node's own disk. */
function ephemeralStorage(
  pod: PodFigures,
  disk: NodeDisk,
  files: PodFiles | undefined,
  volumes: readonly VolumeReading[],
): FsStats {
  let { bytes, inodes } = files?.own ?? { bytes: 0, inodes: 0 };
  for (const { id, name } of pod.containers) {
    for (const used of [disk.layers.get(id), files?.logs.get(name)]) {
      bytes += used?.bytes ?? 0;
      inodes += used?.inodes ?? 0;
    }
  }
  for (const { usage, isLocalEphemeral } of volumes) {
    if (!isLocalEphemeral) continue;
    bytes += Number(usage.usedBytes);
    inodes += Number(usage.inodesUsed);
  }
  return fsStats(disk.root, { bytes, inodes }, disk.at);
}
