import { lstat, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMissing } from "./held-directory.ts";
import { type Mount, mountOf, readMounts } from "./mounts.ts";

// Memory and the kernel's own: they answer as long as the machine does.
const neverWaits = new Set([
  ...["tmpfs", "ramfs", "hugetlbfs", "devtmpfs", "devpts", "mqueue", "proc", "sysfs", "cgroup", "cgroup2"],
  ...["securityfs", "debugfs", "tracefs", "bpf", "nsfs", "configfs", "efivarfs", "selinuxfs"],
]);
const mostLinks = 255;

/**
 * The mount point on the way to a path beyond which a look may wait for something other than the node's own disks (that
 * of `/` and that of the agent's directory): a file server, a FUSE daemon, a disk behind a network. Undefined when there
 * is none. Links are followed, and nothing beyond such a mount point is touched, so this itself does not wait.
 */
export async function foreignMountOf(path: string, rootDir: string): Promise<string | undefined> {
  const mounts = await readMounts();
  const own = new Set([mountOf("/", mounts)?.device, mountOf(rootDir, mounts)?.device]);
  // The last made covers those below it.
  const byPoint = new Map<string, Mount>(mounts.map((mount) => [mount.mountPoint, mount]));
  const waiting = path.split("/");
  let current = "/";
  for (let links = 0; waiting.length > 0; ) {
    const name = waiting.shift();
    if (name === undefined || name === "" || name === ".") continue;
    if (name === "..") {
      current = dirname(current);
      continue;
    }
    const next = join(current, name);
    const mount = byPoint.get(next);
    if (mount !== undefined && !own.has(mount.device) && !neverWaits.has(mount.fsType)) return next;
    const target = await linkAt(next);
    if (target === undefined) current = next;
    else if (links++ >= mostLinks) return undefined;
    else {
      if (target.startsWith("/")) current = "/";
      waiting.unshift(...target.split("/"));
    }
  }
  return undefined;
}

async function linkAt(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
