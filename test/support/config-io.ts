import { posix } from "node:path";
import type { ConfigIo, DirEntry } from "../../src/ground/config/index.ts";

/** A machine for loadConfig: the given files, a two-core host with cgroup v2. */
export function memoryIo(files: Readonly<Record<string, string>> = {}, overrides: Partial<ConfigIo> = {}): ConfigIo {
  const paths = Object.keys(files);
  const isDirectory = (path: string): boolean => paths.some((file) => file.startsWith(`${path}/`));
  const missing = (path: string): Error =>
    Object.assign(new Error(`ENOENT: no such file or directory, open '${path}'`), { code: "ENOENT" });
  return {
    cwd: "/work-dir",
    async readFile(path) {
      const text = files[path];
      if (text === undefined) throw missing(path);
      return new TextEncoder().encode(text);
    },
    async listDir(path) {
      if (!isDirectory(path)) throw missing(path);
      const names = new Set(
        paths
          .filter((file) => file.startsWith(`${path}/`))
          .map((file) => posix.relative(path, file).split("/")[0] ?? ""),
      );
      return [...names].map(
        (name): DirEntry => ({ name, kind: isDirectory(`${path}/${name}`) ? "directory" : "file" }),
      );
    },
    async kindOf(path) {
      if (isDirectory(path)) return "directory";
      if (files[path] === undefined) throw missing(path);
      return "file";
    },
    hostname: () => "Node-1",
    cgroupVersion: async () => 2,
    onlineCpus: async () => "0-1",
    ...overrides,
  };
}
