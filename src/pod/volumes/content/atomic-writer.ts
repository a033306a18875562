import { chmod, chown, mkdir, open, readdir, readFile, readlink, rename, symlink, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { removeTree } from "../../../connections/host/index.ts";
import { hasCode, isMissing } from "../../../ground/base/index.ts";
import { type Content, type ContentFile, checkPath, cleanPath } from "./content.ts";

const dataLink = "..data";
const nextDataLink = "..data_tmp";

export interface WriterOptions {
  readonly now: () => number;
  readonly random: () => number;
  /** True: what is there is known to differ, so it need not be read and compared. */
  readonly isKnownToDiffer?: boolean;
  /** Called when the new files are there but not yet visible, to give them their owners. */
  readonly beforeSwap?: (() => Promise<void>) | undefined;
}

/**
 * Puts files into a volume so that a reader sees either all of the old ones or all of the new ones:
 *
 *     ..2026_01_02_15_04_05.123456789/key     the files
 *     ..data -> ..2026_01_02_15_04_05.123456789
 *     key -> ..data/key
 *
 * Renaming `..data` is the moment of change. Only bytes are compared: another mode alone rewrites nothing. What a
 * crash has left behind is mended by the next call.
 */
export async function writeAtomically(
  volume: string,
  wanted: Content,
  options: WriterOptions,
): Promise<"written" | "unchanged"> {
  const content = cleaned(wanted);
  const present = options.isKnownToDiffer === true ? undefined : await presentVersion(volume);
  if (present !== undefined && (await holdsExactly(join(volume, present), content))) {
    await tidy(volume, content, present);
    return "unchanged";
  }
  const version = await newVersion(volume, options);
  try {
    await writeFiles(join(volume, version), content);
    await options.beforeSwap?.();
    await linkNext(volume, version);
    await rename(join(volume, nextDataLink), join(volume, dataLink));
  } catch (error) {
    await removeTree(join(volume, version));
    throw error;
  }
  await tidy(volume, content, version);
  return "written";
}

function cleaned(content: Content): Content {
  const result = new Map<string, ContentFile>();
  for (const [path, file] of content) {
    checkPath(path);
    result.set(cleanPath(path), file);
  }
  return result;
}

async function presentVersion(volume: string): Promise<string | undefined> {
  try {
    const target = await readlink(join(volume, dataLink));
    // A link that we did not write may lead anywhere: it is replaced, never followed.
    return isVersionName(target) ? target : undefined;
  } catch (error) {
    if (isMissing(error) || hasCode(error, "EINVAL")) return undefined;
    throw error;
  }
}

function isVersionName(name: string): boolean {
  return /^\.\.\d{4}(_\d\d){5}\.\d+$/.test(name);
}

async function holdsExactly(directory: string, content: Content): Promise<boolean> {
  const files = await filesBelow(directory);
  if (files === undefined || files.length !== content.size) return false;
  for (const path of files) {
    const file = content.get(path);
    if (file === undefined) return false;
    if (!(await readFile(join(directory, path))).equals(file.bytes)) return false;
  }
  return true;
}

async function filesBelow(directory: string, prefix = ""): Promise<string[] | undefined> {
  const files: string[] = [];
  try {
    for (const entry of await readdir(join(directory, prefix), { withFileTypes: true })) {
      const path = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
      if (entry.isDirectory()) {
        const below = await filesBelow(directory, path);
        if (below === undefined) return undefined;
        files.push(...below);
      } else if (entry.isFile()) files.push(path);
      else return undefined;
    }
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  return files;
}

async function newVersion(volume: string, { now, random }: WriterOptions): Promise<string> {
  const stamp = new Date(now()).toISOString().slice(0, 19).replace(/[-T:]/g, "_");
  for (;;) {
    const name = `..${stamp}.${String(Math.floor(random() * 1e9)).padStart(9, "0")}`;
    try {
      await mkdir(join(volume, name));
      await chmod(join(volume, name), 0o755);
      return name;
    } catch (error) {
      if (!hasCode(error, "EEXIST")) throw error;
    }
  }
}

async function writeFiles(directory: string, content: Content): Promise<void> {
  for (const [path, { bytes, mode, uid }] of content) {
    const target = join(directory, path);
    if (path.includes("/")) await mkdir(dirname(target), { recursive: true });
    // Exclusive: two paths that mean the same file must not silently become one.
    const file = await open(target, "wx", mode & 0o777);
    try {
      await file.writeFile(bytes);
      if (uid !== undefined) await chown(target, uid, 0);
      await file.chmod(mode & 0o7777);
    } finally {
      await file.close();
    }
  }
}

async function linkNext(volume: string, version: string): Promise<void> {
  try {
    await symlink(version, join(volume, nextDataLink));
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
    await removeTree(join(volume, nextDataLink));
    await symlink(version, join(volume, nextDataLink));
  }
}

/** One link per first path element, and no other version. What somebody else has put into the volume stays. */
async function tidy(volume: string, content: Content, version: string): Promise<void> {
  const missing = new Set([...content.keys()].map((path) => path.split("/", 1)[0] ?? path));
  const stale: string[] = [];
  for (const entry of await readdir(volume, { withFileTypes: true })) {
    const { name } = entry;
    if (isVersionName(name)) {
      if (name !== version) stale.push(name);
    } else if (!missing.delete(name) && entry.isSymbolicLink() && name !== dataLink) {
      await unlink(join(volume, name));
    }
  }
  for (const name of missing) await symlink(`${dataLink}/${name}`, join(volume, name));
  for (const name of stale) await removeTree(join(volume, name));
}
