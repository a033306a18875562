import { lstat, readdir, realpath, rm, stat, unlink } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { countFiles, HeldDirectory, removeTreeIn } from "../../connections/host/index.ts";
import { ifThere, messageOf } from "../../ground/base/index.ts";
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
  // Whatever it is: a container whose log cannot be removed would stay for ever.
  if (directory !== undefined) await removeStartingWith(Buffer.from(basename(logPath)), directory);
  const link = legacyLinkName(logPath, id, directories.podLogsDir);
  if (link !== undefined) await rm(join(directories.legacyDir, link), { force: true });
  return "removed";
}

/** Deletes the logs of instances before this one, and leaves its own: what it said last is worth reading. */
export async function removeEarlierLogs(
  { logPath }: { readonly logPath: string },
  { podLogsDir }: Pick<LogDirectories, "podLogsDir">,
): Promise<void> {
  const own = attemptOf(Buffer.from(basename(logPath)));
  const directory = own === undefined ? undefined : await realDirectory(logPath, podLogsDir);
  if (own === undefined || directory === undefined || directory === "outside") return;
  const earlier = (await namesIn(directory)).filter((name) => (attemptOf(name) ?? own) < own);
  if (earlier.length === 0) return;
  using held = await HeldDirectory.open(directory);
  for (const name of earlier) await removeTreeIn(held, name, directory);
}

/** `3.log`, or a rotated part of it. */
function attemptOf(name: Buffer): number | undefined {
  const digits = /^(\d{1,10})\.log/.exec(name.toString("latin1"))?.[1];
  return digits === undefined ? undefined : Number(digits);
}

async function removeStartingWith(start: Buffer, directory: string): Promise<void> {
  const names = (await namesIn(directory)).filter((name) => name.subarray(0, start.length).equals(start));
  if (names.length === 0) return;
  using held = await HeldDirectory.open(directory);
  for (const name of names) await removeTreeIn(held, name, directory);
}

/**
 * Deletes the log directories of pods whose content may go; returns how many. One that can't be deleted keeps back no
 * other, and is told of in the end.
 */
export async function removePodLogs(
  podLogsDir: string,
  mayRemove: (podUid: string) => boolean,
  signal: AbortSignal,
): Promise<number> {
  const names = await podLogsToRemove(podLogsDir, mayRemove);
  if (names.length === 0) return 0;
  using held = await HeldDirectory.open(podLogsDir);
  const failures: unknown[] = [];
  let removed = 0;
  for (const name of names) {
    signal.throwIfAborted();
    try {
      if (!(await isDirectory(held.path(name)))) continue;
      await removeTreeIn(held, name, podLogsDir);
      removed++;
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length === 1) throw failures[0];
  if (failures.length > 1) {
    const text = `${failures.length} directories of logs can't be removed, the first because ${messageOf(failures[0])}`;
    throw new Error(text, { cause: failures[0] });
  }
  return removed;
}

/** Names are bytes. What is no directory has such a name by chance, and stays. */
async function podLogsToRemove(podLogsDir: string, mayRemove: (podUid: string) => boolean): Promise<readonly Buffer[]> {
  return (await namesIn(podLogsDir)).filter((name) => mayRemove(uidOfLogDirectory(name.toString())));
}

export interface ForeseenLogs {
  /** `namespace_name_uid`. */
  readonly directory: string;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly lastWrittenAt: number;
}

/** What `removePodLogs` would delete now. */
export async function foreseePodLogs(
  podLogsDir: string,
  mayRemove: (podUid: string) => boolean,
  signal: AbortSignal,
): Promise<readonly ForeseenLogs[]> {
  const found: ForeseenLogs[] = [];
  for (const name of await podLogsToRemove(podLogsDir, mayRemove)) {
    const stats = await ifThere(lstat(Buffer.concat([Buffer.from(`${podLogsDir}/`), name])));
    if (stats?.isDirectory() !== true) continue;
    const usage = await ifThere(countFiles(join(podLogsDir, name.toString()), { depth: "all" }, signal));
    found.push({ directory: name.toString(), sizeBytes: usage?.bytes ?? 0, lastWrittenAt: Math.trunc(stats.mtimeMs) });
  }
  return found;
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
  // The runtime's part of such a name is text; what is not is nobody's link to a log.
  for (const name of (await namesIn(legacyDir)).map(String)) {
    signal.throwIfAborted();
    const path = join(legacyDir, name);
    if (!name.endsWith(".log") || !(await isDangling(path))) continue;
    const id = containerIdOfLegacyLog(name);
    if (id === undefined || (await isEnded(id))) await ifThere(unlink(path));
  }
}

/** The directory the log really lies in, links followed; undefined when it is gone. */
async function realDirectory(logPath: string, podLogsDir: string): Promise<string | "outside" | undefined> {
  const directory = await ifThere(realpath(dirname(logPath)));
  const root = await ifThere(realpath(podLogsDir));
  if (directory === undefined || root === undefined) return undefined;
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

/** Names are bytes. */
async function namesIn(directory: string): Promise<readonly Buffer[]> {
  return await ifThere(readdir(directory, { encoding: "buffer" }), []);
}

async function isDirectory(path: Buffer): Promise<boolean> {
  return (await ifThere(lstat(path)))?.isDirectory() === true;
}

async function isDangling(path: string): Promise<boolean> {
  const found = await ifThere(lstat(path));
  if (found === undefined) return true;
  return found.isSymbolicLink() && (await ifThere(stat(path))) === undefined;
}
