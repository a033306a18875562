import { constants, mkdir, open, readdir, readFile, rmdir } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { readKernelFile } from "../../connections/host/index.ts";
import { hasCode } from "../../ground/base/index.ts";

/** Port: the kernel's cgroup file system. Errors carry the kernel's code (ENOENT, EBUSY, ...). */
export interface CgroupFiles {
  /** The parent must exist; one that is there already is fine. */
  makeDirectory(path: string): Promise<void>;
  /** Control files go with it; processes and cgroups below keep it (EBUSY). */
  removeDirectory(path: string): Promise<void>;
  directories(path: string): Promise<readonly string[]>;
  read(path: string): Promise<string>;
  /** Into a control file that exists. */
  write(path: string, text: string): Promise<void>;
  /** Ends every process of the cgroup, those of cgroups below apart, as SIGKILL does. */
  killProcesses(path: string): Promise<void>;
}

const anyoneReads = 0o755;

export const kernelCgroupFiles: CgroupFiles = {
  async makeDirectory(path) {
    try {
      await mkdir(path, { mode: anyoneReads });
    } catch (error) {
      if (!hasCode(error, "EEXIST")) throw error;
    }
  },
  removeDirectory: (path) => rmdir(path),
  async directories(path) {
    const entries = await readdir(path, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  },
  // Figures may have to be added up first. What can't be read is asked for again by a thread, which says why.
  read: async (path) => (path.endsWith(".stat") ? undefined : readKernelFile(path)) ?? (await readFile(path, "utf8")),
  async write(path, text) {
    // Without O_CREAT: a file that the kernel does not offer is reported as missing.
    const file = await open(path, constants.O_WRONLY);
    try {
      await file.write(text);
    } finally {
      await file.close();
    }
  },
  async killProcesses(path) {
    for (const line of (await readFile(join(path, "cgroup.procs"), "utf8")).split("\n")) {
      // Zero stands for processes of another pid namespace; a signal to it would reach our own group.
      if (Number(line) > 0) kill(Number(line));
    }
  },
};

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}
