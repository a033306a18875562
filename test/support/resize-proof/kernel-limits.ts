import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Wish } from "./wishes.ts";

/** What the kernel allows a cgroup. */
export interface KernelLimits {
  readonly shares: string;
  readonly quota: string;
  readonly memory: string;
}

/** As the files of cgroup v1 say it. */
export function limitsOf({ requests, limits }: Wish): KernelLimits {
  return {
    shares: String(Math.max(2, Math.floor((requests.cpu * 1024) / 1000))),
    quota: String(limits.cpu * 100),
    memory: String(limits.memory * 1024 * 1024),
  };
}

/** What the kernel has for a container, or for its pod, as cgroup v1 says it. */
export function kernelLimits(uid: string, container = ""): KernelLimits {
  return {
    shares: read(uid, container, "cpu", "cpu.shares"),
    quota: read(uid, container, "cpu", "cpu.cfs_quota_us"),
    memory: read(uid, container, "memory", "memory.limit_in_bytes"),
  };
}

function read(uid: string, container: string, controller: string, file: string): string {
  return readFileSync(join(podDirectory(uid, controller), container, file), "utf8").trim();
}

const found = new Map<string, string>();

/** Looking through all cgroups takes its time, and a pod's stays where it is. */
function podDirectory(uid: string, controller: string): string {
  const key = `${controller} ${uid}`;
  const known = found.get(key);
  if (known !== undefined && existsSync(known)) return known;
  // What vanishes while it looks is an error for find, and none for us.
  const args = [`/sys/fs/cgroup/${controller}`, "-type", "d", "-name", `pod${uid}`];
  const directory = spawnSync("find", args, { encoding: "utf8" }).stdout.trim();
  found.set(key, directory);
  return directory;
}
