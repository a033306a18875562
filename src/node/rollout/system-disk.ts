import { constants } from "node:fs";
import { open, readdir, rm, unlink } from "node:fs/promises";
import { ifThere, savePrivateFile } from "../../ground/base/index.ts";
import type { StoreDisk } from "./store.ts";

const mostBytes = 16 * 2 ** 20;

/** The machine's disk. Only root may read what lies here, and nobody else can make us read another file. */
export const systemDisk: StoreDisk = {
  read: (path) => ifThere(readWhole(path)),
  saveDurably: savePrivateFile,
  list: (directory) => ifThere(readdir(directory), []),
  remove: (path) => ifThere(unlink(path)),
  removeDirectory: (path) => rm(path, { recursive: true, force: true }),
};

async function readWhole(path: string): Promise<string> {
  await using file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const stats = await file.stat();
  if (!stats.isFile()) throw new Error(`"${path}" is no file`);
  if (stats.size > mostBytes) throw new Error(`"${path}" is longer than ${mostBytes} bytes`);
  return await file.readFile("utf8");
}
