import { access, readdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../../ground/base/index.ts";
import type { IdentifiedPod, ObservedContainer } from "../../../ground/model/index.ts";
import { containerLogPath, legacyLogName, podLogDirectory } from "./paths.ts";

/** Attempts are 32 bits wide at the runtime; a larger number is some other file. */
const largestCount = 2 ** 31 - 1;

/**
 * How often a container has been restarted once the next instance runs. A runtime that lost its records must not make
 * the new instance write into an old one's log, so then the logs left behind tell.
 */
export async function nextRestartCount(newest: ObservedContainer | undefined, logDirectory: string): Promise<number> {
  if (newest !== undefined) return newest.annotations.restartCount + 1;
  let entries: { readonly name: string; isDirectory(): boolean }[];
  try {
    entries = await readdir(logDirectory, { withFileTypes: true });
  } catch {
    return 0;
  }
  const counts = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => /^(\d+)\.log/.exec(entry.name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .filter((count) => count < largestCount);
  return counts.length === 0 ? 0 : Math.max(...counts) + 1;
}

export interface StartedContainer {
  readonly pod: IdentifiedPod;
  readonly name: string;
  readonly id: string;
  readonly restartCount: number;
}

export interface LegacyLogSettings {
  readonly podLogsDir: string;
  /** Where log collectors look: /var/log/containers. */
  readonly legacyDir: string;
  readonly log: Logger;
}

/** Makes a started container's log known to log collectors. Trouble is not the container's: it is only logged. */
export async function linkLegacyLog(started: StartedContainer, settings: LegacyLogSettings): Promise<void> {
  const { pod, name, id, restartCount } = started;
  const target = join(podLogDirectory(settings, pod), containerLogPath(name, restartCount));
  const link = join(settings.legacyDir, legacyLogName(pod, name, id));
  try {
    // A link to nothing would only be removed again by the garbage collection.
    if (!(await exists(target))) return;
    await symlink(target, link);
  } catch (error) {
    settings.log.error("Failed to create legacy symbolic link", error, { path: link, containerLogPath: target });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
