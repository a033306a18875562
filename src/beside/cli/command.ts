import { realpath } from "node:fs/promises";
import { userInfo } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { isMissing } from "../../ground/base/index.ts";
import type { CommandIo } from "./io.ts";
import { layoutOf, type MachineLayout } from "./machine/index.ts";

export function requireRoot(): void {
  if (userInfo().uid !== 0)
    throw new Error("containers need root; run the same command as root, for instance with sudo");
}

/** A path as the user meant it. */
export function pathFrom(io: Pick<CommandIo, "cwd">, path: string): string {
  return resolve(io.cwd, path);
}

/** The machine in a directory, under the one name that the kernel has for it whatever links lead there. */
export async function machineAt(io: CommandIo, directory: string): Promise<MachineLayout> {
  return layoutOf(await realPath(pathFrom(io, directory)));
}

/** What need not be there yet is named by the nearest directory that is. */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const parent = dirname(path);
    if (!isMissing(error) || parent === path) throw error;
    return join(await realPath(parent), basename(path));
  }
}
