import { lstat, readlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifThere } from "../../ground/base/index.ts";
import { type Mount, mountOf, parseMountInfo, readMounts } from "./mounts.ts";

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
  const found = await follow(Buffer.from(path), rootDir, () => false);
  return "mountPoint" in found ? found.mountPoint : undefined;
}

/**
 * Where a path leads, as far as that can be told without waiting: what there is not yet, or not any more, is left as it
 * is written. Other disks count as the node's own here; whoever asks a disk of a pod's must not use this.
 */
export function followOnDisks(
  path: Buffer,
  rootDir: string,
): Promise<{ readonly path: Buffer } | { readonly mountPoint: string }> {
  return follow(path, rootDir, isDisk);
}

/**
 * Mount points of another process, by its /proc/PID/mountinfo, beyond which a look may wait for something other than
 * disks. They are named as it sees them.
 */
export async function foreignPointsIn(mountInfo: string): Promise<ReadonlySet<string>> {
  const own = mountOf("/", await readMounts())?.device;
  // The last made covers those below it.
  const byPoint = new Map(parseMountInfo(mountInfo.split("\n")).map((mount) => [mount.mountPoint, mount]));
  const foreign = [...byPoint.values()].filter(
    (mount) => mount.device !== own && !neverWaits.has(mount.fsType) && !isDisk(mount),
  );
  return new Set(foreign.map(({ mountPoint }) => mountPoint));
}

function isDisk({ source, fsType }: Mount): boolean {
  return source.startsWith("/dev/") && !fsType.startsWith("fuse");
}

/** Names are bytes: inside, each stands for one character. */
async function follow(
  path: Buffer,
  rootDir: string,
  isTrusted: (mount: Mount) => boolean,
): Promise<{ readonly path: Buffer } | { readonly mountPoint: string }> {
  const mounts = await readMounts();
  const own = new Set([mountOf("/", mounts)?.device, mountOf(rootDir, mounts)?.device]);
  // The last made covers those below it.
  const byPoint = new Map(mounts.map((mount) => [Buffer.from(mount.mountPoint).toString("latin1"), mount]));
  const waiting = path.toString("latin1").split("/");
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
    if (mount !== undefined && !own.has(mount.device) && !neverWaits.has(mount.fsType) && !isTrusted(mount)) {
      return { mountPoint: mount.mountPoint };
    }
    const target = links < mostLinks ? await linkAt(Buffer.from(next, "latin1")) : undefined;
    if (target === undefined) current = next;
    else {
      links++;
      if (target.startsWith("/")) current = "/";
      waiting.unshift(...target.split("/"));
    }
  }
  return { path: Buffer.from(current, "latin1") };
}

async function linkAt(path: Buffer): Promise<string | undefined> {
  const found = await ifThere(lstat(path));
  if (!found?.isSymbolicLink()) return undefined;
  return (await ifThere(readlink(path, { encoding: "buffer" })))?.toString("latin1");
}
