import { readFile } from "node:fs/promises";
import { type Mount, readMounts } from "./mounts.ts";

export type CgroupLayout =
  | { readonly version: 2; readonly mountPoint: string; readonly controllers: readonly string[] }
  | {
      readonly version: 1;
      /** Mount point by controller (`cpu`, `memory`…; named hierarchies as `name=systemd`). */
      readonly mountPoints: ReadonlyMap<string, string>;
      /** Where systemd's hybrid set-up mounts the unified hierarchy beside the old ones. */
      readonly unifiedMountPoint: string | undefined;
    };

const cgroupRoot = "/sys/fs/cgroup";

/** Which cgroup hierarchies this host has. Version 2 is what is mounted on /sys/fs/cgroup itself. */
export async function readCgroupLayout(root = "/"): Promise<CgroupLayout> {
  const mounts = await readMounts(root);
  const top = mounts.findLast((mount) => mount.mountPoint === cgroupRoot);
  if (top?.fsType !== "cgroup2") return versionOne(mounts);
  const controllers = await readFile(`${root}${cgroupRoot}/cgroup.controllers`, "utf8");
  return { version: 2, mountPoint: cgroupRoot, controllers: controllers.split(/\s+/).filter((name) => name !== "") };
}

// Options of a v1 hierarchy that name no controller.
const notControllers = new Set(["rw", "ro", "xattr", "clone_children", "noprefix", "none"]);

function versionOne(mounts: readonly Mount[]): CgroupLayout {
  const mountPoints = new Map<string, string>();
  for (const mount of mounts) {
    if (mount.fsType !== "cgroup") continue;
    for (const option of mount.superOptions) {
      const isController = !notControllers.has(option) && !option.startsWith("release_agent=");
      // A container may see a hierarchy twice; the first mount is the host's.
      if (isController && !mountPoints.has(option)) mountPoints.set(option, mount.mountPoint);
    }
  }
  const unified = mounts.find((mount) => mount.fsType === "cgroup2");
  return { version: 1, mountPoints, unifiedMountPoint: unified?.mountPoint };
}
