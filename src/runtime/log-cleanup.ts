import { lstat, readdir, realpath, rm, stat, unlink } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { removeTree } from "../host/index.ts";
import { containerIdOfLegacyLog, legacyLogName, uidOfLogDirectory } from "./mapping/index.ts";

export interface LogDirectories {
  readonly podLogsDir: string;
  /** Where log collectors look: /var/log/containers. */
  readonly legacyDir: string;
}

/**
 * Deletes a container's log with its rotated parts, then the link that log collectors follow. A path that leads out of
 * the directory of pod logs is not ours to delete from.
 */
export async function removeContainerLogs(
  container: { readonly id: string; readonly logPath: string },
  directories: LogDirectories,
): Promise<"removed" | "outside"> {
  const { id, logPath } = container;
  if (logPath === "") return "removed";
  const directory = await realDirectory(logPath, directories.podLogsDir);
  if (directory === "outside") return "outside";
  const name = basename(logPath);
  for (const file of directory === undefined ? [] : await namesIn(directory)) {
    // Whatever it is: a container whose log cannot be removed would stay for ever.
    if (directory !== undefined && file.startsWith(name)) {
      await rm(join(directory, file), { recursive: true, force: true });
    }
  }
  const link = legacyLinkName(logPath, id, directories.podLogsDir);
  if (link !== undefined) await rm(join(directories.legacyDir, link), { force: true });
  return "removed";
}

/** Deletes the log directories of pods whose content may go; returns how many. */
export async function removePodLogs(
  podLogsDir: string,
  mayRemove: (podUid: string) => boolean,
  signal: AbortSignal,
): Promise<number> {
  let removed = 0;
  for (const name of await namesIn(podLogsDir)) {
    signal.throwIfAborted();
    const path = join(podLogsDir, name);
    if (!mayRemove(uidOfLogDirectory(name)) || !(await isDirectory(path))) continue;
    await removeTree(path);
    removed++;
  }
  return removed;
}

/**
 * Deletes links to logs that are gone. During rotation a log is away for a moment: the link of a container that
 * `isEnded` does not call ended stays.
 */
export async function removeDanglingLinks(
  legacyDir: string,
  isEnded: (containerId: string) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  for (const name of await namesIn(legacyDir)) {
    signal.throwIfAborted();
    const path = join(legacyDir, name);
    if (!name.endsWith(".log") || !(await isDangling(path))) continue;
    const id = containerIdOfLegacyLog(name);
    if (id === undefined || (await isEnded(id))) await unlinkIfThere(path);
  }
}

/** The directory the log really lies in, links followed; undefined when it is gone. */
async function realDirectory(logPath: string, podLogsDir: string): Promise<string | "outside" | undefined> {
  let directory: string;
  let root: string;
  try {
    [directory, root] = await Promise.all([realpath(dirname(logPath)), realpath(podLogsDir)]);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  const below = relative(root, directory);
  const isBelow = below !== "" && below !== ".." && !below.startsWith(`..${sep}`);
  return isBelow ? directory : "outside";
}

/** The link's name follows from the pod's directory and the container's: `<namespace>_<name>_<uid>/<container>`. */
function legacyLinkName(logPath: string, containerId: string, podLogsDir: string): string | undefined {
  const [podDirectory = "", containerName = "", file] = relative(podLogsDir, logPath).split(sep);
  const [namespace, name, uid] = podDirectory.split("_");
  if (file === undefined || namespace === undefined || name === undefined || uid === undefined) return undefined;
  return legacyLogName({ metadata: { namespace, name, uid }, spec: { containers: [] } }, containerName, containerId);
}

async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isDirectory();
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

async function isDangling(path: string): Promise<boolean> {
  try {
    if (!(await lstat(path)).isSymbolicLink()) return false;
    await stat(path);
    return false;
  } catch (error) {
    if (isMissing(error)) return true;
    throw error;
  }
}

async function unlinkIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
