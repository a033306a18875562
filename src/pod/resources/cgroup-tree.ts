import { dirname, join } from "node:path";
import type { CgroupLayout } from "../../connections/host/index.ts";
import { aFewAtOnce, type Clock, hasCode, mapAtMost, messageOf, settleAtMost } from "../../ground/base/index.ts";
import type { ObservedResources } from "../../ground/model/index.ts";
import { isKept } from "./cgroup-compare.ts";
import type { CgroupDriver, CgroupPresence, HealMode, LeftProcesses } from "./cgroup-driver.ts";
import type { CgroupFiles } from "./cgroup-files.ts";
import { heldMemory, resourcesV1, resourcesV2 } from "./cgroup-reads.ts";
import type { CgroupValues } from "./cgroup-values.ts";
import { type CgroupWrite, cgroupWrites } from "./cgroup-writes.ts";

/** Controllers without which a cgroup is not complete. Others are nice to have. */
const neededV1 = ["cpu", "cpuacct", "cpuset", "memory", "name=systemd", "pids", "hugetlb"];
const neededV2 = ["cpu", "cpuset", "memory", "hugetlb", "pids"];

const removalAttempts = 10;
const firstRemovalPauseMs = 1;
/** By then a process that was ending anyway has had 31 ms to do so. */
const killFromAttempt = 6;

export class CgroupError extends Error {
  override readonly name = "CgroupError";
  readonly path: string;
  constructor(action: string, path: string, cause: unknown) {
    super(`Cannot ${action} cgroup ${path}: ${messageOf(cause)}`, { cause });
    this.path = path;
  }
}

/** The kernel does not take a value. */
export class CgroupValueError extends CgroupError {
  constructor(file: string, path: string, cause: unknown) {
    super(`set ${file} of`, path, cause);
  }
}

interface Hierarchy {
  readonly mountPoint: string;
  readonly controllers: readonly string[];
}

/** What is written to the files of one controller, in order. */
interface WriteGroup {
  readonly mountPoint: string;
  readonly writes: readonly CgroupWrite[];
}

/** Cgroups as directories and control files, alike in one unified tree (v2) or in one tree per controller (v1). */
export class CgroupTree implements CgroupDriver {
  readonly version: 1 | 2;
  readonly #hierarchies: readonly Hierarchy[];
  /** Where a runtime may leave cgroups that we do not make: to be cleaned up all the same. */
  readonly #alsoCleaned: readonly Hierarchy[];
  readonly #files: CgroupFiles;
  readonly #clock: Clock;

  constructor(layout: CgroupLayout, files: CgroupFiles, clock: Clock) {
    this.version = layout.version;
    this.#hierarchies = hierarchiesOf(layout);
    const unified = layout.version === 1 ? layout.unifiedMountPoint : undefined;
    this.#alsoCleaned = unified === undefined ? [] : [{ mountPoint: unified, controllers: [] }];
    this.#files = files;
    this.#clock = clock;
  }

  async make(path: string): Promise<"made" | "existed"> {
    const presence = await this.presence(path);
    await this.create(path);
    return presence === "missing" ? "made" : "existed";
  }

  /** Makes the cgroup and all above it. */
  async create(path: string): Promise<void> {
    await inEach(this.#hierarchies, "create", path, async ({ mountPoint, controllers }) => {
      if (this.version === 2) await this.#makeUnified(mountPoint, path, controllers);
      else await this.#makeWithParents(join(mountPoint, path));
      if (this.version === 1 && controllers.includes("cpuset")) await this.#inheritCpus(join(mountPoint, path));
    });
  }

  /** Where the cgroup is, once for each tree. */
  directoriesOf(path: string): readonly string[] {
    return this.#hierarchies.map(({ mountPoint }) => join(mountPoint, path));
  }

  async presence(path: string): Promise<CgroupPresence> {
    const needed = this.version === 1 ? neededV1 : neededV2;
    const judged = this.#hierarchies.filter(({ controllers }) => controllers.some((name) => needed.includes(name)));
    const found = await mapAtMost(aFewAtOnce, judged, (hierarchy) => this.#presenceIn(hierarchy, path));
    if (found.every((presence) => presence === "complete")) return "complete";
    return found.every((presence) => presence === "missing") ? "missing" : "partial";
  }

  async write(path: string, values: CgroupValues): Promise<void> {
    await this.#writeGroups(path, this.#groupsOf(values));
  }

  async heal(path: string, values: CgroupValues, mode: HealMode): Promise<void> {
    await this.#writeGroups(path, await this.#different(path, values, mode));
  }

  /** Whether a control file says something else than `values`. */
  async differs(path: string, values: CgroupValues, mode: HealMode): Promise<boolean> {
    return (await this.#different(path, values, mode)).length > 0;
  }

  /** Controllers that this machine lacks are left out. */
  #groupsOf(values: CgroupValues): readonly WriteGroup[] {
    const writes = cgroupWrites(values, this.version);
    return [...new Set(writes.map(({ controller }) => controller))].flatMap((controller) => {
      const hierarchy = this.#hierarchies.find((one) => one.controllers.includes(controller));
      if (hierarchy === undefined) return [];
      return [{ mountPoint: hierarchy.mountPoint, writes: writes.filter((write) => write.controller === controller) }];
    });
  }

  /** Groups are written as a whole, as the order of their files matters. */
  async #different(path: string, values: CgroupValues, mode: HealMode): Promise<readonly WriteGroup[]> {
    const different: WriteGroup[] = [];
    for (const group of this.#groupsOf(values)) {
      if (!(await this.#isKept(join(group.mountPoint, path), group.writes, mode))) different.push(group);
    }
    return different;
  }

  async #isKept(directory: string, writes: readonly CgroupWrite[], mode: HealMode): Promise<boolean> {
    for (const write of writes) {
      try {
        const found = (await this.#files.read(join(directory, write.file))).trim();
        if (!isKept(write, found, mode)) return false;
      } catch (error) {
        // What cannot be read is tried to be written, and that tells what is wrong.
        if (!(write.optional && hasCode(error, "ENOENT"))) return false;
      }
    }
    return true;
  }

  async #writeGroups(path: string, groups: readonly WriteGroup[]): Promise<void> {
    const failures = await mapAtMost(aFewAtOnce, groups, ({ mountPoint, writes }) =>
      this.#writeAll(join(mountPoint, path), path, writes),
    );
    const failure = failures.find((error) => error !== undefined);
    if (failure !== undefined) throw failure;
  }

  /** One after another, as their order matters within a controller; what fails does not keep back the rest. */
  async #writeAll(directory: string, path: string, writes: readonly CgroupWrite[]): Promise<CgroupError | undefined> {
    let failure: CgroupError | undefined;
    for (const { file, text, optional, readBack } of writes) {
      const target = join(directory, file);
      try {
        await this.#files.write(target, text);
        if (!readBack) continue;
        const kept = (await this.#files.read(target)).trim();
        if (kept !== text) throw new Error(`wrote ${text}, the kernel kept ${kept}`);
      } catch (error) {
        if (!(optional && hasCode(error, "ENOENT"))) failure ??= new CgroupValueError(file, path, error);
      }
    }
    return failure;
  }

  async memoryUsage(path: string): Promise<bigint> {
    const file = this.version === 2 ? "memory.current" : "memory.usage_in_bytes";
    return BigInt(await this.#readMemory(path, file));
  }

  async memoryHeld(path: string): Promise<bigint> {
    const [usage, figures] = [await this.memoryUsage(path), await this.#readMemory(path, "memory.stat")];
    return heldMemory(usage, figures, this.version);
  }

  async #readMemory(path: string, file: string): Promise<string> {
    const hierarchy = this.#hierarchies.find(({ controllers }) => controllers.includes("memory"));
    if (hierarchy === undefined)
      throw new CgroupError("measure", path, new Error("this machine does not count memory"));
    try {
      return (await this.#files.read(join(hierarchy.mountPoint, path, file))).trim();
    } catch (error) {
      throw new CgroupError("measure", path, error);
    }
  }

  async resources(path: string, meantShares: number): Promise<ObservedResources> {
    const read = async (controller: string, file: string): Promise<string> => {
      const hierarchy = this.#hierarchies.find(({ controllers }) => controllers.includes(controller));
      if (hierarchy === undefined) return "";
      try {
        return (await this.#files.read(join(hierarchy.mountPoint, path, file))).trim();
      } catch (error) {
        throw new CgroupError("read", path, error);
      }
    };
    return this.version === 1 ? await resourcesV1(read) : await resourcesV2(read, meantShares);
  }

  async children(path: string): Promise<ReadonlySet<string>> {
    const names = new Set<string>();
    for (const { mountPoint } of [...this.#hierarchies, ...this.#alsoCleaned]) {
      for (const name of (await this.#directories(join(mountPoint, path))) ?? []) names.add(name);
    }
    return names;
  }

  async remove(path: string, processes: LeftProcesses, signal: AbortSignal): Promise<void> {
    await inEach([...this.#hierarchies, ...this.#alsoCleaned], "remove", path, ({ mountPoint }) =>
      this.#removeTree(join(mountPoint, path), processes, signal),
    );
  }

  async #removeTree(directory: string, processes: LeftProcesses, signal: AbortSignal): Promise<void> {
    let pauseMs = firstRemovalPauseMs;
    for (let attempt = 1; ; attempt++) {
      const below = await this.#directories(directory);
      if (below === undefined) return;
      for (const name of below) await this.#removeTree(join(directory, name), processes, signal);
      try {
        await this.#files.removeDirectory(directory);
        return;
      } catch (error) {
        if (hasCode(error, "ENOENT")) return;
        // A process that has just ended still counts for a moment.
        if (!hasCode(error, "EBUSY") || attempt === removalAttempts) throw error;
        // What the runtime has forgotten, as it may when it is killed or its caller leaves, nobody else would ever end.
        if (processes === "kill" && attempt >= killFromAttempt) await this.#files.killProcesses(directory);
      }
      await this.#clock.sleep(pauseMs, signal);
      pauseMs *= 2;
    }
  }

  async #directories(directory: string): Promise<readonly string[] | undefined> {
    try {
      return await this.#files.directories(directory);
    } catch (error) {
      if (hasCode(error, "ENOENT")) return undefined;
      throw error;
    }
  }

  async #presenceIn({ mountPoint, controllers }: Hierarchy, path: string): Promise<CgroupPresence> {
    try {
      if (this.version === 1) {
        await this.#files.directories(join(mountPoint, path));
        return "complete";
      }
      const present = (await this.#files.read(join(mountPoint, path, "cgroup.controllers"))).trim().split(/\s+/);
      const needed = neededV2.filter((name) => controllers.includes(name));
      return needed.every((name) => present.includes(name)) ? "complete" : "partial";
    } catch (error) {
      if (hasCode(error, "ENOENT")) return "missing";
      throw new CgroupError("look at", path, error);
    }
  }

  /** Level by level, because each must hand its controllers down before the next is made. */
  async #makeUnified(mountPoint: string, path: string, controllers: readonly string[]): Promise<void> {
    let directory = mountPoint;
    for (const level of path.split("/").filter((part) => part !== "")) {
      await this.#delegateControllers(directory, controllers);
      directory = join(directory, level);
      await this.#files.makeDirectory(directory);
    }
  }

  /** Lets cgroups below use the controllers; one that cannot be given must not withhold the others. */
  async #delegateControllers(directory: string, controllers: readonly string[]): Promise<void> {
    const file = join(directory, "cgroup.subtree_control");
    try {
      await this.#files.write(file, controllers.map((name) => `+${name}`).join(" "));
    } catch {
      for (const name of controllers) await this.#files.write(file, `+${name}`).catch(() => undefined);
    }
  }

  /** What is above is nearly always there, so it is looked at only when the kernel says it is missing. */
  async #makeWithParents(directory: string): Promise<void> {
    try {
      await this.#files.makeDirectory(directory);
    } catch (error) {
      const isTop = this.#hierarchies.some(({ mountPoint }) => mountPoint === directory);
      if (!hasCode(error, "ENOENT") || isTop) throw error;
      await this.#makeWithParents(dirname(directory));
      await this.#files.makeDirectory(directory);
    }
  }

  /** A new v1 cpuset allows no CPU at all, and nothing can run in it, until it is told which. */
  async #inheritCpus(directory: string): Promise<void> {
    for (const file of ["cpuset.cpus", "cpuset.mems"]) await this.#inherit(directory, file);
  }

  /** The content of a file that takes its parent's where it has none. */
  async #inherit(directory: string, file: string): Promise<string> {
    const own = (await this.#files.read(join(directory, file))).trim();
    const isTop = this.#hierarchies.some(({ mountPoint }) => mountPoint === directory);
    if (own !== "" || isTop) return own;
    const inherited = await this.#inherit(dirname(directory), file);
    await this.#files.write(join(directory, file), inherited);
    return inherited;
  }
}

/** All are tried; the first failure is told. */
async function inEach(
  hierarchies: readonly Hierarchy[],
  action: string,
  path: string,
  act: (hierarchy: Hierarchy) => Promise<void>,
): Promise<void> {
  const results = await settleAtMost(aFewAtOnce, hierarchies, act);
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw new CgroupError(action, path, failed.reason);
}

/** On v1 several controllers may share one tree. */
function hierarchiesOf(layout: CgroupLayout): readonly Hierarchy[] {
  if (layout.version === 2) return [layout];
  const byMountPoint = new Map<string, string[]>();
  for (const [controller, mountPoint] of layout.mountPoints) {
    const controllers = byMountPoint.get(mountPoint);
    if (controllers === undefined) byMountPoint.set(mountPoint, [controller]);
    else controllers.push(controller);
  }
  return [...byMountPoint].map(([mountPoint, controllers]) => ({ mountPoint, controllers }));
}
