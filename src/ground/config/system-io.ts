import { lstat, readdir, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { isThere } from "../base/index.ts";
import type { ConfigIo, DirEntry } from "./agent-config.ts";

/** The machine we run on. */
export function systemIo(cwd: string): ConfigIo {
  return {
    cwd,
    readFile: (path) => readFile(path),
    async listDir(path) {
      const entries = await readdir(path, { withFileTypes: true });
      return entries.map((entry) => ({ name: entry.name, kind: kindOf(entry) }));
    },
    kindOf: async (path) => kindOf(await lstat(path)),
    hostname,
    cgroupVersion: async () => ((await isThere("/sys/fs/cgroup/cgroup.controllers")) ? 2 : 1),
    async onlineCpus() {
      const text = await readFile("/sys/devices/system/cpu/online", "utf8").catch(() => undefined);
      return text?.trim();
    },
  };
}

interface FileType {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

function kindOf(type: FileType): DirEntry["kind"] {
  if (type.isSymbolicLink()) return "symlink";
  if (type.isDirectory()) return "directory";
  return type.isFile() ? "file" : "other";
}
