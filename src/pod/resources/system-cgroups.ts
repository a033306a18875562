import { readlink } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, hasCode, type Logger, messageOf } from "../../ground/base/index.ts";
import type { CgroupFiles } from "./cgroup-files.ts";
import type { CgroupTree } from "./cgroup-tree.ts";

/** As often as the kubelet. */
const everyMs = 60_000;
/** Processes have children while others are moved, and those are where their parents were. */
const rounds = 11;
const init = 1;

export interface SystemCgroupSettings {
  /** For this process; empty: where it was started. As it is written, whatever names cgroups of pods have. */
  readonly agent: string;
  /** For all processes that are in none; empty: they stay there. */
  readonly strays: string;
}

/** Port: the processes of this machine. */
export interface HostProcesses {
  readonly own: number;
  /** Those have no program, and can't be moved. */
  isKernelThread(pid: number): Promise<boolean>;
  /** Whether the numbers that this process sees are the machine's. */
  areShared(): Promise<boolean>;
}

export interface SystemCgroupPorts {
  readonly tree: CgroupTree;
  readonly files: CgroupFiles;
  readonly processes: HostProcesses;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Keeps this process, and those that nobody has put anywhere, in cgroups that the configuration names. */
export class SystemCgroups {
  readonly #settings: SystemCgroupSettings;
  readonly #ports: SystemCgroupPorts;
  readonly #lastProblems = new Map<string, string>();

  constructor(settings: SystemCgroupSettings, ports: SystemCgroupPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  /** Resolves after the first try. What fails is said, and tried again later. */
  async ensure(): Promise<void> {
    const { agent, strays } = this.#settings;
    if (strays !== "") await this.#orComplain(strays, () => this.#collect(rooted(strays)));
    if (agent !== "") await this.#orComplain(agent, () => this.#moveAgent(rooted(agent)));
  }

  async run(signal: AbortSignal): Promise<void> {
    const { agent, strays } = this.#settings;
    if (agent === "" && strays === "") return;
    for (;;) {
      await this.#ports.clock.sleep(everyMs, signal);
      await this.ensure();
    }
  }

  async #moveAgent(path: string): Promise<void> {
    const { tree, processes } = this.#ports;
    // In a container of its own the machine's cgroups are none of its business.
    if (!(await processes.areShared())) return;
    await tree.create(path);
    for (const directory of tree.directoriesOf(path)) await this.#move(processes.own, directory);
  }

  async #collect(path: string): Promise<void> {
    const { tree, processes } = this.#ports;
    if (!(await processes.areShared())) return;
    await tree.create(path);
    const from = tree.directoriesOf("/");
    const failures: unknown[] = [];
    for (const [index, directory] of tree.directoriesOf(path).entries()) {
      await this.#empty(from[index] ?? "", directory).catch((error: unknown) => failures.push(error));
    }
    if (failures.length > 0) throw failures[0];
  }

  /** In version 1 a process may be in none in one tree, and somewhere in another: there it stays. */
  async #empty(from: string, into: string): Promise<void> {
    let failure: unknown;
    for (let round = 0; round < rounds; round++) {
      const strays = await this.#strays(from);
      if (strays.length === 0) return;
      failure = undefined;
      for (const pid of strays) {
        await this.#move(pid, into).catch((error: unknown) => {
          failure ??= new Error(`process ${pid}: ${messageOf(error)}`, { cause: error });
        });
      }
    }
    if (failure !== undefined) throw failure;
  }

  async #strays(directory: string): Promise<readonly number[]> {
    const { files, processes } = this.#ports;
    const text = await files.read(join(directory, "cgroup.procs"));
    const strays: number[] = [];
    for (const pid of text.split("\n").map(Number)) {
      // Zero stands for processes that this one can't see, and would mean itself where it is written.
      if (pid > init && !(await processes.isKernelThread(pid))) strays.push(pid);
    }
    return strays;
  }

  async #move(pid: number, directory: string): Promise<void> {
    try {
      await this.#ports.files.write(join(directory, "cgroup.procs"), String(pid));
    } catch (error) {
      // It has ended.
      if (!hasCode(error, "ESRCH")) throw error;
    }
  }

  async #orComplain(cgroup: string, act: () => Promise<void>): Promise<void> {
    try {
      await act();
      this.#lastProblems.delete(cgroup);
    } catch (error) {
      const problem = messageOf(error);
      if (this.#lastProblems.get(cgroup) !== problem)
        this.#ports.log.error("Could not move processes to their cgroup; trying again every minute", error, { cgroup });
      this.#lastProblems.set(cgroup, problem);
    }
  }
}

function rooted(name: string): string {
  return join("/", name);
}

export const hostProcesses: HostProcesses = {
  own: process.pid,
  async isKernelThread(pid) {
    try {
      await readlink(`/proc/${pid}/exe`);
      return false;
    } catch (error) {
      // A process that has ended is none to be moved either.
      return hasCode(error, "ENOENT") || hasCode(error, "ESRCH");
    }
  },
  async areShared() {
    const [first, own] = await Promise.all([readlink("/proc/1/ns/pid"), readlink("/proc/self/ns/pid")]);
    return first === own;
  },
};
