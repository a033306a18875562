import { access, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../../ground/base/index.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import { containerLogPath, legacyLogName, podLogDirectory } from "./paths.ts";

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
