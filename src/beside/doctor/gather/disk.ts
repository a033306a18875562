import { lstat, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { Mount } from "../../../connections/host/index.ts";
import { messageOf } from "../../../ground/base/index.ts";
import { settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import { isAgent, rootDirOf } from "./processes.ts";

/** The file systems that the node lives on. */
export interface DiskFacts {
  readonly fileSystems: readonly FileSystemFact[];
  /** Mounts that went read-only although they are disks of the node. */
  readonly readOnly: readonly string[];
  /** Directories of pods that the agent does not know any more; undefined without an agent. */
  readonly orphans: readonly string[] | undefined;
  /** Directories that volumes of pods are mounted below, and that no agent runs with. */
  readonly otherRoots: readonly string[];
  readonly logs: {
    readonly maxSize: string;
    readonly maxFiles: number;
    readonly largest: LogFile | undefined;
    /** Why nobody could look at them. */
    readonly problem?: string;
  };
}

export interface FileSystemFact {
  /** What the node keeps there: `nodefs`, `logs`. */
  readonly use: string;
  readonly path: string;
  readonly availableBytes: number;
  readonly capacityBytes: number;
  readonly inodesFree: number;
  readonly inodes: number;
  /** Bytes that became fewer in a second, over the time that the agent remembers; undefined: not known. */
  readonly lossPerSecond: number | undefined;
}

interface LogFile {
  readonly path: string;
  readonly bytes: number;
}

const mostLogs = 2_000;
const orphanAfterMs = 10 * 60_000;

export async function gatherDisk(world: ExaminedWorld, need: NeedFact): Promise<DiskFacts> {
  const config = await need("config");
  const { rootDir } = config.report;
  const logsDir = settingText(config, "podLogsDir");
  const agent = await need("agent");
  const history = agent.state === "running" ? agent.self.diskHistory : undefined;
  const fileSystems: FileSystemFact[] = [];
  for (const [use, path] of [
    ["nodefs", rootDir],
    ["logs", logsDir],
  ] as const) {
    const found = await usageOf(world, use, path, use === "nodefs" ? history : undefined);
    if (found !== undefined) fileSystems.push(found);
  }
  const pods = agent.state === "running" ? new Set(agent.pods.map(({ metadata }) => metadata?.uid)) : undefined;
  const { mountOf, readMounts } = await import("../../../connections/host/index.ts");
  const mounts = await readMounts(world.root);
  const agents = (await need("processes")).filter(isAgent).map(({ args }) => rootDirOf(args));
  const inUse = new Set<string>();
  // Mounts have the names that links lead to.
  for (const root of [rootDir, ...agents]) inUse.add(root).add(await realpath(root).catch(() => root));
  return {
    fileSystems,
    readOnly: readOnlyMounts([rootDir, logsDir].map((path) => mountOf(path, mounts))),
    otherRoots: rootsOfPods(mounts).filter((root) => !inUse.has(root)),
    orphans: pods && (await orphansIn(world, join(rootDir, "pods"), pods)),
    logs: {
      maxSize: settingText(config, "containerLogMaxSize"),
      maxFiles: Number(settingText(config, "containerLogMaxFiles")),
      ...(await largestLog(world, logsDir).then(
        (largest) => ({ largest }),
        (error: unknown) => ({ largest: undefined, problem: messageOf(error) }),
      )),
    },
  };
}

type DiskHistory = readonly { readonly at: number; readonly availableBytes: number }[];

async function usageOf(
  { files: disks }: ExaminedWorld,
  use: string,
  path: string,
  history: DiskHistory | undefined,
): Promise<FileSystemFact | undefined> {
  const found = await disks.fileSystem(path);
  if (found === undefined) return undefined;
  const { bsize, blocks, bavail, files, ffree } = found;
  return {
    use,
    path,
    availableBytes: bavail * bsize,
    capacityBytes: blocks * bsize,
    inodesFree: ffree,
    inodes: files,
    lossPerSecond: lossOver(history ?? []),
  };
}

/** Less than this says nothing about a day. */
const shortestSpanMs = 10 * 60_000;

export function lossOver(history: DiskHistory): number | undefined {
  const [first] = history;
  const last = history.at(-1);
  if (first === undefined || last === undefined || last.at - first.at < shortestSpanMs) return undefined;
  return (first.availableBytes - last.availableBytes) / ((last.at - first.at) / 1000);
}

function readOnlyMounts(mounts: readonly (Mount | undefined)[]): readonly string[] {
  const found = mounts.flatMap((mount) =>
    mount !== undefined && (mount.options.includes("ro") || mount.superOptions.includes("ro"))
      ? [mount.mountPoint]
      : [],
  );
  return [...new Set(found)];
}

/** ROOT/pods/UID/volumes/KIND/NAME: as every kubelet mounts them. */
function rootsOfPods(mounts: readonly { readonly mountPoint: string }[]): readonly string[] {
  const roots = mounts.flatMap(({ mountPoint }) => {
    const [, root] = /^(\/.+?)\/pods\/[\w-]{1,64}\/volumes\/[^/]+\//.exec(mountPoint) ?? [];
    return root === undefined ? [] : [root];
  });
  return [...new Set(roots)];
}

async function orphansIn(
  { files, clock }: ExaminedWorld,
  directory: string,
  known: ReadonlySet<string | undefined>,
): Promise<readonly string[]> {
  const orphans: string[] = [];
  for (const name of await files.names(directory)) {
    if (known.has(name)) continue;
    const found = await lstat(join(directory, name)).catch(() => undefined);
    // One that is being taken down is nobody's leftover.
    if (found !== undefined && clock.now() - found.mtimeMs > orphanAfterMs) orphans.push(join(directory, name));
  }
  return orphans;
}

/** DIR/namespace_name_uid/container/0.log; a directory of a pod is left out when there are too many. */
async function largestLog({ files }: ExaminedWorld, directory: string): Promise<LogFile | undefined> {
  let largest: LogFile | undefined;
  let looked = 0;
  for (const pod of await files.names(directory, 500)) {
    for (const container of await files.names(join(directory, pod), 50).catch(() => [])) {
      for (const log of await files.names(join(directory, pod, container), 20).catch(() => [])) {
        if (!log.endsWith(".log") || looked++ > mostLogs) continue;
        const path = join(directory, pod, container, log);
        const found = await lstat(path).catch(() => undefined);
        if (found?.isFile() && found.size > (largest?.bytes ?? 0)) largest = { path, bytes: found.size };
      }
    }
  }
  return largest;
}
