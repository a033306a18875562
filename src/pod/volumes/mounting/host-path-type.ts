import { constants, type Stats } from "node:fs";
import { mkdir, open, stat } from "node:fs/promises";
import { hasCode, ifThere, table } from "../../../ground/base/index.ts";

interface TypeRule {
  readonly create?: (path: string) => Promise<void>;
  readonly matches: (found: Stats) => boolean;
  readonly noun: string;
}

const typeRules: Readonly<Record<string, TypeRule>> = table({
  DirectoryOrCreate: { create: createDirectory, matches: (found) => found.isDirectory(), noun: "directory" },
  Directory: { matches: (found) => found.isDirectory(), noun: "directory" },
  FileOrCreate: { create: createFile, matches: (found) => found.isFile(), noun: "file" },
  File: { matches: (found) => found.isFile(), noun: "file" },
  Socket: { matches: (found) => found.isSocket(), noun: "socket file" },
  CharDevice: { matches: (found) => found.isCharacterDevice(), noun: "character device" },
  BlockDevice: { matches: (found) => found.isBlockDevice(), noun: "block device" },
});

/** What must be there according to the type, which may have it made. */
export async function checkHostPath(path: string, type: string): Promise<void> {
  if (type === "") return;
  const rule = ruleOf(type);
  if ((await foreseeHostPath(path, type)) === "there" || rule.create === undefined) return;
  await rule.create(path);
  check(path, rule, await ifThere(stat(path)));
}

/** What the check would come to. Throws as it would, and makes nothing. Missing: nothing was to be checked. */
export async function foreseeHostPath(path: string, type: string): Promise<"there" | "to be made" | "missing"> {
  const found = await ifThere(stat(path));
  if (type === "") return found === undefined ? "missing" : "there";
  const rule = ruleOf(type);
  if (found === undefined && rule.create !== undefined) return "to be made";
  check(path, rule, found);
  return "there";
}

function ruleOf(type: string): TypeRule {
  const rule = typeRules[type];
  if (rule === undefined) throw new Error(`${type} is an invalid volume type`);
  return rule;
}

function check(path: string, rule: TypeRule, found: Stats | undefined): void {
  if (found !== undefined && rule.matches(found)) return;
  throw new Error(`hostPath type check failed: ${path} is not a ${rule.noun}`);
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
  return hasCode(error, "EEXIST");
}
