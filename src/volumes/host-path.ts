import type { Stats } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { VolumeError, type VolumeKind } from "./kind.ts";

/** A path of the node itself. The optional type says what must be there, or may be created. */
export const hostPathKind: VolumeKind = {
  pluginName: "kubernetes.io~host-path",
  handles: (volume) => volume.hostPath !== undefined,
  async mount({ volume }) {
    const { path = "", type = "" } = volume.hostPath ?? {};
    if (path.split("/").includes("..")) {
      throw new VolumeError(volume.name, `invalid HostPath \`${path}\`: must not contain '..'`);
    }
    await checkType(volume.name, path, type);
    // Never relabelled: a path of the host belongs to the host.
    return { type: "filesystem", hostPath: path, readOnly: false, relabel: false };
  },
};

interface TypeRule {
  readonly create?: (path: string) => Promise<void>;
  readonly matches: (found: Stats) => boolean;
  readonly noun: string;
}

const typeRules: Readonly<Record<string, TypeRule>> = {
  DirectoryOrCreate: { create: createDirectory, matches: (found) => found.isDirectory(), noun: "directory" },
  Directory: { matches: (found) => found.isDirectory(), noun: "directory" },
  FileOrCreate: { create: createFile, matches: (found) => found.isFile(), noun: "file" },
  File: { matches: (found) => found.isFile(), noun: "file" },
  Socket: { matches: (found) => found.isSocket(), noun: "socket file" },
  CharDevice: { matches: (found) => found.isCharacterDevice(), noun: "character device" },
  BlockDevice: { matches: (found) => found.isBlockDevice(), noun: "block device" },
};

async function checkType(volume: string, path: string, type: string): Promise<void> {
  if (type === "") return;
  const rule = typeRules[type];
  if (rule === undefined) throw new VolumeError(volume, `${type} is an invalid volume type`);
  let found = await statOrMissing(path);
  if (found === undefined && rule.create !== undefined) {
    await rule.create(path);
    found = await statOrMissing(path);
  }
  if (found === undefined || !rule.matches(found)) {
    throw new VolumeError(volume, `hostPath type check failed: ${path} is not a ${rule.noun}`);
  }
}

async function createDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o755 });
}

async function createFile(path: string): Promise<void> {
  const file = await open(path, "a", 0o644);
  await file.close();
}

async function statOrMissing(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR"))
      return undefined;
    throw error;
  }
}
