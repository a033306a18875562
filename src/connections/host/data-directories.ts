import { join } from "node:path";
import type { Logger } from "../../ground/base/index.ts";
import { ensureDirectory } from "./directories.ts";
import { makeShared } from "./mounts.ts";
import { isSelinuxEnabled, setSelinuxLabel } from "./security.ts";

export interface DirectorySettings {
  readonly rootDir: string;
  readonly podLogsDir: string;
  /** The gate ContainerCheckpoint. */
  readonly checkpoints: boolean;
}

export const containerLogsDir = "/var/log/containers";
const pluginDirectoryLabel = "system_u:object_r:container_file_t:s0";

/** What lies below the root directory, with the modes that upstream gives it. */
export function dataDirectories({ rootDir, podLogsDir, checkpoints }: DirectorySettings): readonly [string, number][] {
  return [
    [podLogsDir, 0o750],
    ...["pods", "plugins", "plugins_registry", "pod-resources"].map((name): [string, number] => [
      join(rootDir, name),
      0o750,
    ]),
    ...(checkpoints ? [[join(rootDir, "checkpoints"), 0o700] as [string, number]] : []),
    [containerLogsDir, 0o755],
  ];
}

/** Makes the directories of a root directory that exists already, and lets mounts below it reach containers. */
export async function prepareDirectories(settings: DirectorySettings, log: Logger): Promise<void> {
  const { rootDir } = settings;
  try {
    const result = await makeShared(rootDir);
    log.debug(2, "Mounts below the root directory reach containers", { rootDir, result });
  } catch (error) {
    throw new Error(
      `The root directory "${rootDir}" cannot be made a shared mount; run as root with CAP_SYS_ADMIN, or mount it shared beforehand (mount --make-shared)`,
      { cause: error },
    );
  }
  for (const [path, mode] of dataDirectories(settings)) await ensureDirectory(path, mode);
  for (const name of ["plugins", "plugins_registry"]) await labelPluginDirectory(join(rootDir, name), log);
}

/** Lets plugins that run in containers use the directory. */
export async function labelPluginDirectory(path: string, log: Logger): Promise<void> {
  if (!(await isSelinuxEnabled())) return;
  try {
    await setSelinuxLabel(path, pluginDirectoryLabel);
  } catch (error) {
    log.error("Unprivileged containerized plugins might not work, could not set the SELinux context", error, { path });
  }
}
