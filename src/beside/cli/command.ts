import { realpath } from "node:fs/promises";
import { userInfo } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { type ParseArgsConfig, parseArgs } from "node:util";
import { isAbort, isMissing, messageOf } from "../../ground/base/index.ts";
import { type CommandIo, UsageError } from "./io.ts";
import { layoutOf, type MachineLayout } from "./machine/index.ts";

export const defaultStateDir = "/var/lib/nodelet";

/** Runs a command's work; what it throws becomes a message for the user and an exit code. */
export async function reportingErrors(
  name: string,
  usage: string,
  io: CommandIo,
  work: () => Promise<number>,
): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (isAbort(error, io.signal)) return 130;
    io.stderr.write(`nodelet ${name}: ${messageOf(error)}\n`);
    if (!(error instanceof UsageError)) return 1;
    io.stderr.write(usage);
    return 2;
  }
}

/** Reads options strictly; an unknown one is a UsageError. */
export function readOptions<Options extends NonNullable<ParseArgsConfig["options"]>>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    throw new UsageError(messageOf(error), { cause: error });
  }
}

export function requireRoot(): void {
  if (userInfo().uid !== 0)
    throw new Error("containers need root; run the same command as root, for instance with sudo");
}

/** A path as the user meant it. */
export function pathFrom(io: CommandIo, path: string): string {
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

export function seconds(option: string, text: string): number {
  const value = Number(text);
  if (text === "" || !Number.isFinite(value) || value < 0) {
    throw new UsageError(`--${option} wants a number of seconds, found "${text}"`);
  }
  return value * 1000;
}
