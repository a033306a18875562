import { closeSync, constants, type Stats } from "node:fs";
import { chmod, type FileHandle, lstat, mkdir, open, realpath, rmdir, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  HeldDirectory,
  isMountPoint,
  loadSyscalls,
  mountFlags,
  openPath,
  SyscallError,
} from "../../../connections/host/index.ts";
import { hasCode, ifThere, isMissing } from "../../../ground/base/index.ts";
import { mountWorkHere, unmountAllAt } from "./unmount.ts";

/** A path inside a volume leads, or may be made to lead, out of it. */
export class SubPathError extends Error {
  override readonly name = "SubPathError";
}

/** Makes what is missing of a path inside a volume, each directory with the mode of the volume's own. */
export async function createSubPath(volumePath: string, subPath: string): Promise<void> {
  const elements = elementsOf(subPath);
  const volume = await realpath(volumePath);
  if (!(await lstat(volume)).isDirectory()) throw new SubPathError(`${volumePath} is not a directory`);
  const { found, missing } = await existingPart(volume, elements);
  if (missing.length === 0) return;
  const mode = (await lstat(volume)).mode & 0o7777;
  let directory = await openWithin(volume, found);
  try {
    for (const name of missing) {
      const isNew = await makeDirectory(directory.path(name), mode);
      // Nothing is followed from here on: whoever puts a link where a directory was made a moment ago only fails us.
      const next = await directory.enter(name);
      directory.close();
      directory = next;
      if (isNew) await chmod(directory.self, mode);
    }
  } finally {
    directory.close();
  }
}

/** False when somebody else was quicker: another container of the pod may want the same path. */
async function makeDirectory(path: Buffer, mode: number): Promise<boolean> {
  try {
    await mkdir(path, { mode });
    return true;
  } catch (error) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** How much of the path exists, with links resolved; it must lie inside the volume. */
async function existingPart(
  volume: string,
  elements: readonly string[],
): Promise<{ readonly found: string; readonly missing: readonly string[] }> {
  for (let count = elements.length; count >= 0; count--) {
    try {
      const found = await realpath(join(volume, ...elements.slice(0, count)));
      return { found: relativeTo(volume, found), missing: elements.slice(count) };
    } catch (error) {
      if (!isMissing(error)) throw error;
      // A link that leads nowhere exists; going on from its parent would create something beside what it names.
      if (count > 0 && (await isLink(join(volume, ...elements.slice(0, count))))) {
        throw new SubPathError(`unexpected symlink found ${elements.slice(0, count).join("/")}`);
      }
    }
  }
  throw new SubPathError(`${volume} is gone`);
}

async function isLink(path: string): Promise<boolean> {
  return (await ifThere(lstat(path)))?.isSymbolicLink() === true;
}

async function openWithin(volume: string, inside: string): Promise<HeldDirectory> {
  let directory = await HeldDirectory.open(volume);
  for (const name of elementsOf(inside)) {
    try {
      const next = await directory.enter(name);
      directory.close();
      directory = next;
    } catch (error) {
      directory.close();
      throw error;
    }
  }
  return directory;
}

/**
 * Mounts a part of a volume at the target, and only a part of it: the path is resolved once, then opened by the
 * kernel without following any link, and what was opened is mounted by its descriptor. A link that a container puts
 * there in between leads to an error, not out of the volume.
 */
export async function mountSubPath(volumePath: string, subPath: string, target: string): Promise<void> {
  await using place = await openSubPath(volumePath, subPath);
  const found = await place.stat();
  if (await isMountPoint(target)) {
    if (isSame(await lstat(target), found)) return;
    await unmountAllAt(target, mountWorkHere);
  }
  await makeTarget(target, found.isDirectory());
  const calls = await loadSyscalls();
  calls.mount(`/proc/self/fd/${place.fd}`, target, "", mountFlags.bind);
}

/** The text of a file inside a volume, read on behalf of the pod that owns the volume. */
export async function readVolumeFile(volumePath: string, path: string): Promise<string> {
  await using place = await openSubPath(volumePath, path);
  const found = await place.stat();
  // The pod has put it there: opening a FIFO would wait for ever, and a huge file would take all memory.
  if (!found.isFile()) throw new SubPathError(`${path} is not a file`);
  if (found.size > largestFile)
    throw new SubPathError(`${path} has ${found.size} bytes; at most ${largestFile} are read`);
  await using file = await open(`/proc/self/fd/${place.fd}`, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(found.size);
  const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
  return buffer.toString("utf8", 0, bytesRead);
}

// As much as an object of the API may hold: what a pod sets its environment from is no larger.
const largestFile = 1024 * 1024;

interface OpenPlace extends AsyncDisposable {
  readonly fd: number;
  stat(): Promise<Stats>;
}

async function openSubPath(volumePath: string, subPath: string): Promise<OpenPlace> {
  const volume = await realpath(volumePath);
  const resolved = await realpath(join(volume, ...elementsOf(subPath)));
  const inside = relativeTo(volume, resolved);
  const directory = await open(volume, openPath | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    return await openBelow(directory, inside);
  } finally {
    await directory.close();
  }
}

async function openBelow(directory: FileHandle, inside: string): Promise<OpenPlace> {
  if (inside === "") return open(`/proc/self/fd/${directory.fd}`, openPath | constants.O_DIRECTORY);
  const calls = await loadSyscalls();
  let fd: number;
  try {
    fd = calls.openBeneath(directory.fd, inside);
  } catch (error) {
    if (!(error instanceof SyscallError)) throw error;
    if (error.code === "ENOSYS") return openStepwise(directory, inside);
    if (error.code === "ELOOP" || error.code === "EXDEV") {
      throw new SubPathError(`unexpected symlink found in ${inside}`, { cause: error });
    }
    throw error;
  }
  return {
    fd,
    stat: () => stat(`/proc/self/fd/${fd}`),
    [Symbol.asyncDispose]: async () => closeSync(fd),
  };
}

/** For kernels without openat2: the same, one element at a time. */
async function openStepwise(directory: FileHandle, inside: string): Promise<OpenPlace> {
  let place: FileHandle = await open(`/proc/self/fd/${directory.fd}`, openPath | constants.O_DIRECTORY);
  for (const name of elementsOf(inside)) {
    const parent = place;
    try {
      place = await open(`/proc/self/fd/${parent.fd}/${name}`, openPath | constants.O_NOFOLLOW);
    } finally {
      await parent.close();
    }
    if ((await place.stat()).isSymbolicLink()) {
      await place.close();
      throw new SubPathError(`unexpected symlink found in ${inside}`);
    }
  }
  return place;
}

async function makeTarget(target: string, isDirectory: boolean): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o750 });
  const present = await ifThere(lstat(target));
  if (present !== undefined) {
    if (present.isDirectory() === isDirectory) return;
    await (present.isDirectory() ? rmdir(target) : unlink(target));
  }
  if (isDirectory) await mkdir(target, { mode: 0o750 });
  else await writeFile(target, "", { flag: "wx", mode: 0o640 });
}

function elementsOf(path: string): readonly string[] {
  if (path.startsWith("/")) throw new SubPathError(`error SubPath \`${path}\` must not be an absolute path`);
  const elements = path.split("/").filter((element) => element !== "" && element !== ".");
  if (elements.includes("..")) throw new SubPathError(`unable to provision SubPath \`${path}\`: must not contain '..'`);
  return elements;
}

function relativeTo(volume: string, path: string): string {
  if (path === volume) return "";
  // The root of the node is a volume, too, and the only one whose path ends with a slash.
  const prefix = volume === "/" ? volume : `${volume}/`;
  if (!path.startsWith(prefix)) throw new SubPathError(`${path} leads out of its volume ${volume}`);
  return path.slice(prefix.length);
}

function isSame(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}
