import { labelText, type MetricText } from "../../../ground/metrics/index.ts";
import type { PodFiles } from "../stats/log-figures.ts";
import type { NodeStatistics } from "../stats/node-stats.ts";
import type { VolumeReading } from "../stats/ports.ts";
import type { PodFigures } from "../stats/usage-figures.ts";

const volumeFamilies: readonly (readonly [string, string, keyof VolumeReading["usage"]])[] = [
  ["kubelet_volume_stats_capacity_bytes", "Bytes that the volume can hold", "capacityBytes"],
  ["kubelet_volume_stats_available_bytes", "Bytes that are left in the volume", "availableBytes"],
  ["kubelet_volume_stats_used_bytes", "Bytes that are used of the volume", "usedBytes"],
  ["kubelet_volume_stats_inodes", "Files that the volume can hold", "inodes"],
  ["kubelet_volume_stats_inodes_free", "Files that can still be made in the volume", "inodesFree"],
  ["kubelet_volume_stats_inodes_used", "Files in the volume", "inodesUsed"],
];

/** The part of /metrics about claims and logs; as old as the statistics it is from. */
export async function writeDiskMetrics(
  text: MetricText,
  statistics: NodeStatistics,
  signal: AbortSignal,
): Promise<void> {
  const { pods } = await statistics.figures(signal);
  const [volumes, files] = await Promise.all([statistics.volumes(pods, signal), statistics.files(signal)]);
  writeClaims(
    text,
    [...volumes.values()].flatMap((measured) => measured.volumes),
  );
  await text.drain();
  writeLogs(text, pods, (pod) => files.get(pod.uid));
}

function writeClaims(text: MetricText, volumes: readonly VolumeReading[]): void {
  // Pods may share a claim; it is one volume all the same.
  const claims = new Map<string, VolumeReading>();
  for (const volume of volumes) {
    if (volume.claim === undefined) continue;
    const { namespace, name } = volume.claim;
    claims.set(labelText({ namespace, persistentvolumeclaim: name }), volume);
  }
  if (claims.size === 0) return;
  for (const [name, help, field] of volumeFamilies) {
    text.family(name, "gauge", `[ALPHA] ${help}`);
    for (const [labels, { usage }] of claims) text.sample(name, labels, Number(usage[field]));
  }
}

function writeLogs(
  text: MetricText,
  pods: readonly PodFigures[],
  filesOf: (pod: PodFigures) => PodFiles | undefined,
): void {
  const name = "kubelet_container_log_filesystem_used_bytes";
  let isFirst = true;
  for (const pod of pods) {
    for (const [container, { bytes }] of filesOf(pod)?.logs ?? []) {
      if (isFirst) text.family(name, "gauge", "[ALPHA] Bytes that the logs of the container take");
      isFirst = false;
      text.sample(name, labelText({ container, namespace: pod.namespace, pod: pod.name, uid: pod.uid }), bytes);
    }
  }
}
