// The kernel's cgroup v2 tree in memory, for tests: it refuses what the kernel refuses.
import { join } from "node:path";
import type { CgroupFiles } from "../../src/pod/resources/cgroup-files.ts";

interface FakeCgroup {
  readonly children: Map<string, FakeCgroup>;
  readonly written: Map<string, string>;
  readonly delegated: Set<string>;
  available: readonly string[];
  processes: number;
}

/** The files of each controller, with what the kernel has in those of a new cgroup. */
const filesByController: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  cpu: { "cpu.weight": "100", "cpu.max": "max 100000" },
  memory: { "memory.max": "max", "memory.min": "0", "memory.current": "0", "memory.stat": "anon 0" },
  pids: { "pids.max": "max" },
  cpuset: { "cpuset.cpus": "" },
  hugetlb: { "hugetlb.2MB.max": "max" },
};

export class FakeCgroup2 implements CgroupFiles {
  /** Processes outlive even SIGKILL, as those do that wait for a dead disk. */
  unkillable = false;
  readonly #mountPoint: string;
  readonly #root: FakeCgroup;
  /** Controllers that the kernel offers at the top but will not delegate. */
  readonly undelegable = new Set<string>();
  /** Values that have been written so far. */
  writes = 0;

  constructor(mountPoint: string, controllers: readonly string[]) {
    this.#mountPoint = mountPoint;
    this.#root = newCgroup(controllers);
  }

  async makeDirectory(path: string): Promise<void> {
    const { parent, name } = this.#split(path);
    if (!parent.children.has(name)) parent.children.set(name, newCgroup([...parent.delegated]));
  }

  async removeDirectory(path: string): Promise<void> {
    const { parent, name } = this.#split(path);
    const cgroup = parent.children.get(name);
    if (cgroup === undefined) throw failure("ENOENT", path);
    if (cgroup.children.size > 0 || cgroup.processes > 0) throw failure("EBUSY", path);
    parent.children.delete(name);
  }

  async directories(path: string): Promise<readonly string[]> {
    return [...this.#find(path).children.keys()];
  }

  async read(path: string): Promise<string> {
    const { cgroup, file } = this.#file(path);
    if (file === "cgroup.controllers") return `${cgroup.available.join(" ")}\n`;
    const text = cgroup.written.get(file) ?? offeredBy(cgroup)[file];
    if (text === undefined || cgroup === this.#root) throw failure("ENOENT", path);
    return `${text}\n`;
  }

  async write(path: string, text: string): Promise<void> {
    const { cgroup, file } = this.#file(path);
    if (file === "cgroup.subtree_control") {
      const names = text.split(" ").map((word) => word.slice(1));
      if (names.some((name) => !cgroup.available.includes(name))) throw failure("ENOENT", path);
      if (names.some((name) => this.undelegable.has(name))) throw failure("EBUSY", path);
      for (const name of names) cgroup.delegated.add(name);
      for (const child of cgroup.children.values()) child.available = [...cgroup.delegated];
      return;
    }
    if (cgroup === this.#root || !Object.hasOwn(offeredBy(cgroup), file)) throw failure("ENOENT", path);
    this.writes++;
    cgroup.written.set(file, text);
  }

  async killProcesses(path: string): Promise<void> {
    if (!this.unkillable) this.#find(path).processes = 0;
  }

  setProcesses(path: string, count: number): void {
    this.#find(join(this.#mountPoint, path)).processes = count;
  }

  /** Every file written below the mount point, as `path/file: text`. */
  report(): readonly string[] {
    const lines: string[] = [];
    const visit = (path: string, cgroup: FakeCgroup): void => {
      for (const [file, text] of cgroup.written) lines.push(`${path}/${file}: ${text}`);
      for (const [name, child] of cgroup.children) visit(`${path}/${name}`, child);
    };
    visit("", this.#root);
    return lines.sort();
  }

  #find(path: string): FakeCgroup {
    const below = path.slice(this.#mountPoint.length);
    let cgroup = this.#root;
    for (const name of below.split("/").filter((part) => part !== "")) {
      const child = cgroup.children.get(name);
      if (child === undefined) throw failure("ENOENT", path);
      cgroup = child;
    }
    return cgroup;
  }

  #split(path: string): { readonly parent: FakeCgroup; readonly name: string } {
    const slash = path.lastIndexOf("/");
    return { parent: this.#find(path.slice(0, slash)), name: path.slice(slash + 1) };
  }

  #file(path: string): { readonly cgroup: FakeCgroup; readonly file: string } {
    const slash = path.lastIndexOf("/");
    return { cgroup: this.#find(path.slice(0, slash)), file: path.slice(slash + 1) };
  }
}

function offeredBy({ available }: FakeCgroup): Readonly<Record<string, string>> {
  return Object.assign({}, ...available.map((controller) => filesByController[controller] ?? {}));
}

function newCgroup(available: readonly string[]): FakeCgroup {
  return { children: new Map(), written: new Map(), delegated: new Set(), available, processes: 0 };
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
