import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, hasCode, isMissing, never } from "../../../ground/base/index.ts";
import { signalPid } from "./processes.ts";

/** The mount points of all cgroup hierarchies: one on cgroup v2, one per controller on v1. */
async function cgroupHierarchies(): Promise<readonly string[]> {
  const { readMounts } = await import("../../../connections/host/index.ts");
  const mounts = (await readMounts()).filter(({ fsType }) => fsType === "cgroup" || fsType === "cgroup2");
  return [...new Set(mounts.map(({ mountPoint }) => mountPoint))];
}

/** Makes the cgroup in every hierarchy. */
export async function createCgroup(path: string): Promise<void> {
  for (const hierarchy of await cgroupHierarchies()) {
    const directory = join(hierarchy, path);
    await mkdir(directory, { recursive: true });
    // On v1 a fresh cpuset has neither processors nor memory and so takes no process.
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      const inherited = await readIfPresent(join(dirname(directory), file));
      const own = await readIfPresent(join(directory, file));
      if (inherited?.trim() && own !== undefined && own.trim() === "")
        await writeFile(join(directory, file), inherited);
    }
  }
}

/** The numbers of all processes in the cgroup and below it. */
export async function cgroupPids(path: string): Promise<readonly number[]> {
  const pids = new Set<number>();
  for (const hierarchy of await cgroupHierarchies()) {
    for (const directory of await tree(join(hierarchy, path))) {
      const text = (await readIfPresent(join(directory, "cgroup.procs"))) ?? "";
      for (const line of text.split("\n")) {
        // Zero stands for a process of another pid namespace.
        if (line !== "" && line !== "0") pids.add(Number(line));
      }
    }
  }
  return [...pids];
}

/** Kills whatever runs in the cgroup, then removes it and all below it from every hierarchy. */
export async function removeCgroup(path: string, clock: Clock): Promise<void> {
  const deadline = clock.monotonic() + 10_000;
  for (;;) {
    for (const pid of await cgroupPids(path)) signalPid(pid, "SIGKILL");
    const left = await removeDirectories(path);
    if (left.length === 0) return;
    if (clock.monotonic() >= deadline) throw new Error(`cannot remove cgroup ${left.join(", ")}: it stays busy`);
    await clock.sleep(20, never);
  }
}

async function removeDirectories(path: string): Promise<readonly string[]> {
  const left: string[] = [];
  for (const hierarchy of await cgroupHierarchies()) {
    for (const directory of (await tree(join(hierarchy, path))).toReversed()) {
      try {
        await rmdir(directory);
      } catch (error) {
        if (!isMissing(error)) left.push(directory);
      }
    }
  }
  return left;
}

/** The directory and all below it, parents before children; empty when it does not exist. */
async function tree(directory: string): Promise<readonly string[]> {
  try {
    const entries = await readdir(directory, { withFileTypes: true });
    const below: string[] = [directory];
    for (const entry of entries) if (entry.isDirectory()) below.push(...(await tree(join(directory, entry.name))));
    return below;
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    // ENODEV: the cgroup was removed between opening and reading; EOPNOTSUPP: a threaded v2 cgroup.
    if (isMissing(error) || hasCode(error, "ENODEV") || hasCode(error, "EOPNOTSUPP")) return undefined;
    throw error;
  }
}
