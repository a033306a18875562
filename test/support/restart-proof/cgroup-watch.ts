import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock, TaskScope } from "../../../src/ground/base/index.ts";

/** What a cgroup may use, in the files of both versions. */
const limitFiles = new Set([
  ...["cpu.shares", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuset.cpus", "memory.limit_in_bytes", "pids.max"],
  ...["cpu.weight", "cpu.max", "memory.max", "memory.min", "memory.low", "memory.high", "memory.swap.max"],
]);
const mount = "/sys/fs/cgroup";
/** Deeper than a container of a pod of a tier below the root of the pods. */
const deepest = 5;
const everyMs = 500;

/** The value of every limit at or below the cgroup of all pods; with uids, of no other pods than these. */
export async function readLimits(root: string, uids?: ReadonlySet<string>): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const controllers = (await readdir(mount)).filter((name) => !name.includes("."));
  const hierarchies = (await exists(join(mount, "cgroup.controllers")))
    ? [mount]
    : controllers.map((c) => join(mount, c));
  for (const hierarchy of hierarchies) await readBelow(join(hierarchy, root), deepest, uids, found);
  return found;
}

/** Compares the limits of the tiers and of some pods with what they were, again and again. */
export class CgroupWatch implements AsyncDisposable {
  readonly changes: string[] = [];
  readonly #root: string;
  readonly #uids: ReadonlySet<string>;
  readonly #scope = new TaskScope();
  #last: ReadonlyMap<string, string>;

  private constructor(root: string, uids: ReadonlySet<string>, first: ReadonlyMap<string, string>) {
    this.#root = root;
    this.#uids = uids;
    this.#last = first;
    this.#scope.spawn("look at cgroups", async (signal) => {
      for (;;) {
        await systemClock.sleep(everyMs, signal);
        await this.look();
      }
    });
  }

  static async start(root: string, uids: ReadonlySet<string>): Promise<CgroupWatch> {
    return new CgroupWatch(root, uids, await readLimits(root, uids));
  }

  get size(): number {
    return this.#last.size;
  }

  /** Whether it looks at limits of this pod. */
  sees(uid: string): boolean {
    return [...this.#last.keys()].some((path) => path.replaceAll("_", "-").includes(`pod${uid}`));
  }

  async look(): Promise<void> {
    const now = await readLimits(this.#root, this.#uids);
    for (const file of new Set([...this.#last.keys(), ...now.keys()])) {
      const [was, is] = [this.#last.get(file), now.get(file)];
      if (was !== is) this.changes.push(`${file}: ${was ?? "absent"} -> ${is ?? "absent"}`);
    }
    this.#last = now;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
  }
}

async function readBelow(
  directory: string,
  levels: number,
  uids: ReadonlySet<string> | undefined,
  found: Map<string, string>,
): Promise<void> {
  const entries = await readdir(directory, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) {
    const path = join(directory, entry.name);
    if (limitFiles.has(entry.name)) {
      const value = await readFile(path, "utf8").catch(() => undefined);
      if (value !== undefined) found.set(path.slice(mount.length + 1), value.trim());
    } else if (entry.isDirectory() && levels > 1 && isAsked(entry.name, uids)) {
      await readBelow(path, levels - 1, uids, found);
    }
  }
}

/** Cgroups of pods are named by their uids, under systemd with other dashes. */
function isAsked(name: string, uids: ReadonlySet<string> | undefined): boolean {
  if (uids === undefined) return true;
  const [, uid] = /(?:^|-)pod([0-9a-f_-]{32,})(?:\.slice)?$/.exec(name) ?? [];
  return uid === undefined || uids.has(uid.replaceAll("_", "-"));
}

async function exists(path: string): Promise<boolean> {
  return await readFile(path).then(
    () => true,
    () => false,
  );
}
