import { join } from "node:path";
import { countFiles, type DirectoryUsage } from "../../../connections/host/index.ts";
import { aFewAtOnce, mapAtMost } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { StatsSettings } from "./ports.ts";
import type { PodFigures } from "./usage-figures.ts";

/** What the agent itself keeps on the node's disk for a pod. */
export interface PodFiles {
  /** By container name. */
  readonly logs: ReadonlyMap<string, DirectoryUsage>;
  /** Files of the pod that belong to none of its containers or volumes. */
  readonly own: DirectoryUsage;
}

const nothing: DirectoryUsage = { bytes: 0, inodes: 0 };

/** One pod after the other: it is no hurry, and others need the disk too. */
export async function readPodFiles(
  pods: readonly PodFigures[],
  { podLogsDir, podsDir }: Pick<StatsSettings, "podLogsDir" | "podsDir">,
  signal: AbortSignal,
): Promise<ReadonlyMap<PodUid, PodFiles>> {
  const files = new Map<PodUid, PodFiles>();
  for (const { uid, name, namespace, containers } of pods) {
    signal.throwIfAborted();
    const logDir = join(podLogsDir, `${namespace}_${name}_${uid}`);
    const filesIn = (path: string): Promise<DirectoryUsage> =>
      countFiles(path, { depth: "files directly in it" }, signal).catch(() => nothing);
    const own = await filesIn(logDir);
    const hosts = await countFiles(join(podsDir, uid, "etc-hosts"), { depth: "all" }, signal).catch(() => nothing);
    const logs = await mapAtMost(
      aFewAtOnce,
      containers,
      async (container) => [container.name, await filesIn(join(logDir, container.name))] as const,
    );
    files.set(uid, {
      logs: new Map(logs),
      own: { bytes: own.bytes + hosts.bytes, inodes: own.inodes + hosts.inodes },
    });
  }
  return files;
}
