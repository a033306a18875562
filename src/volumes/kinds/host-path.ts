import { constants, type Stats } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { isMissing } from "../../host/index.ts";
import type { VolumeKind } from "./kind.ts";

/** A path of the node itself. The optional type says what must be there, or may be created. */
export const hostPathKind: VolumeKind = {
  plugin: "kubernetes.io/host-path",
  matches: (source) => hostPathOf(source) !== undefined,
  async setUp({ source }) {
    const { path = "", type = "" } = hostPathOf(source) ?? {};
    if (path.split("/").includes("..")) throw new Error(`invalid HostPath \`${path}\`: must not contain '..'`);
    await checkType(path, type);
    const readOnly = source.type === "claim" && source.readOnly;
    // Never relabelled: a path of the host belongs to the host.
    return { volume: { type: "filesystem", hostPath: path, readOnly, relabel: false } };
  },
  // It has no directory of its own, and the host's path is the host's.
  async tearDown() {},
};

type Source = Parameters<VolumeKind["matches"]>[0];

function hostPathOf(source: Source): { readonly path: string; readonly type?: string | undefined } | undefined {
  return source.type === "inline" ? source.volume.hostPath : source.persistent.spec?.hostPath;
}

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

async function checkType(path: string, type: string): Promise<void> {
  if (type === "") return;
  const rule = typeRules[type];
  if (rule === undefined) throw new Error(`${type} is an invalid volume type`);
  let found = await statOrMissing(path);
  if (found === undefined && rule.create !== undefined) {
    await rule.create(path);
    found = await statOrMissing(path);
  }
  if (found === undefined || !rule.matches(found)) {
    throw new Error(`hostPath type check failed: ${path} is not a ${rule.noun}`);
  }
}

async function createDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o755 });
  } catch (error) {
    if (!isTaken(error)) throw error;
  }
}

/** Never through a link: one that leads nowhere yet would let a pod have files created anywhere on the node. */
async function createFile(path: string): Promise<void> {
  try {
    const file = await open(path, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644);
    await file.close();
  } catch (error) {
    if (!isTaken(error)) throw error;
  }
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EEXIST";
}

async function statOrMissing(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
