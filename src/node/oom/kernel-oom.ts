/** One process that the kernel killed because memory ran out. */
export interface OomKill {
  /** Whose memory ran out: that of the machine, or what a cgroup may use. */
  readonly of: "machine" | "cgroup";
  /** Where the process lived. */
  readonly cgroup: string;
  readonly process: string;
  readonly pid: number;
}

const begin = /invoked oom-killer:/;
/**
 * Names of processes may hold anything, also what looks like the rest of the line: the last numbers count. A name has 15
 * bytes, up to four characters each in the log; so where one holds `,task=` too, it is the first of these that begins it.
 */
const summary =
  /^oom-kill:constraint=[^,]*,nodemask=.*?,cpuset=.*?,mems_allowed=[\d,-]*(,global_oom)?(?:,oom_memcg=(.*?))?,task_memcg=(.*?),task=(.{0,60}),pid=(\d+),uid=\d+$/;
const oldSummary = /^Task in (\S+) killed as a result of limit of (\S+)/;
const oldKill = /^(?:Memory cgroup out of memory: |Out of memory: )?Kill(?:ed)? process (\d+) \((.*)\)/;

/** Finds kills in the kernel's log, line by line, by the words of kernels since 4.19 and of those before. */
export class OomReader {
  /** What is known of the kill that the lines tell of; undefined: they tell of none. */
  #open: { readonly of: OomKill["of"]; readonly cgroup: string } | undefined;

  take(line: string): OomKill | undefined {
    if (begin.test(line)) {
      this.#open = { of: "machine", cgroup: "/" };
      return undefined;
    }
    if (this.#open === undefined) return undefined;
    const told = summary.exec(line);
    if (told !== null) {
      this.#open = undefined;
      const [, global, limited = "/", cgroup = "/", process = "", pid] = told;
      return { of: global !== undefined || limited === "/" ? "machine" : "cgroup", cgroup, process, pid: Number(pid) };
    }
    const old = oldSummary.exec(line);
    if (old !== null) {
      this.#open = { of: old[2] === "/" ? "machine" : "cgroup", cgroup: old[1] ?? "/" };
      return undefined;
    }
    const kill = oldKill.exec(line);
    if (kill === null) return undefined;
    const found = { ...this.#open, process: kill[2] ?? "", pid: Number(kill[1]) };
    this.#open = undefined;
    return found;
  }
}

/** Ids of containers that a cgroup's path names, the outermost first: a container may have others inside. */
export function containerIdsIn(cgroup: string): readonly string[] {
  return cgroup.split("/").flatMap((element) => /(?:^|-)([0-9a-f]{64})(?:\.scope)?$/.exec(element)?.[1] ?? []);
}
