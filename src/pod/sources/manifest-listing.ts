import type { BigIntStats } from "node:fs";
import { lstat, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, isShortage, messageOf } from "../../ground/base/index.ts";
import { maxManifestBytes } from "../../ground/model/index.ts";

/** What stands at the path that was given for manifests. */
export type ManifestListing =
  | { readonly type: "missing" }
  | { readonly type: "unreadable"; readonly reason: string }
  | {
      readonly type: "manifests";
      /** Absolute paths, sorted. */
      readonly files: readonly string[];
      /** Entries that are neither files nor links to files. */
      readonly skipped: readonly string[];
    };

/** Names that begin with a dot are passed over in silence: editors and tools keep their own files under such names. */
export async function listManifests(path: string): Promise<ManifestListing> {
  const found = await statOf(path);
  if (found === "absent") return { type: "missing" };
  if ("reason" in found) return { type: "unreadable", reason: found.reason };
  if (found.isFile()) return { type: "manifests", files: [path], skipped: [] };
  if (!found.isDirectory()) return { type: "unreadable", reason: "it is neither a directory nor a file" };
  let names: readonly string[];
  try {
    names = await readdir(path);
  } catch (error) {
    return hasCode(error, "ENOENT") ? { type: "missing" } : { type: "unreadable", reason: messageOf(error) };
  }
  const files: string[] = [];
  const skipped: string[] = [];
  for (const name of names.filter((entry) => !entry.startsWith(".")).sort()) {
    const file = join(path, name);
    const entry = await statOf(file);
    if (entry === "absent") continue;
    // What cannot be looked at counts as a manifest, so that it is named as a broken one.
    if ("reason" in entry || entry.isFile()) files.push(file);
    else skipped.push(file);
  }
  return { type: "manifests", files, skipped };
}

export interface Unreadable {
  readonly reason: string;
}

/** A state of a file; two equal ones mean that nothing was written in between. */
export interface FileStamp {
  readonly identity: string;
  readonly modifiedAtMs: number;
  /** Later than the above when the file was moved here, or given to another owner. */
  readonly changedAtMs: number;
}

/** A link that leads nowhere is unreadable, not absent. */
async function statOf(path: string): Promise<BigIntStats | "absent" | Unreadable> {
  try {
    return await stat(path, { bigint: true });
  } catch (error) {
    if (!hasCode(error, "ENOENT") && !hasCode(error, "ENOTDIR")) return { reason: messageOf(error) };
    const isLink = await lstat(path).then(
      () => true,
      () => false,
    );
    return isLink ? { reason: "it is a link to something that does not exist" } : "absent";
  }
}

export async function stampOf(path: string): Promise<FileStamp | "absent" | Unreadable> {
  const found = await statOf(path);
  if (found === "absent" || "reason" in found) return found;
  if (!found.isFile()) return "absent";
  const { dev, ino, size, mtimeNs, ctimeNs, mtimeMs, ctimeMs } = found;
  const identity = [dev, ino, size, mtimeNs, ctimeNs].join(":");
  return { identity, modifiedAtMs: Number(mtimeMs), changedAtMs: Number(ctimeMs) };
}

/** The content of a file, read only so far that it shows to be too large. Throws while the machine lacks what it takes. */
export async function readManifest(path: string): Promise<Uint8Array | Unreadable> {
  try {
    await using file = await open(path, "r");
    const limit = maxManifestBytes + 1;
    const { size } = await file.stat();
    const parts: Uint8Array[] = [];
    let length = 0;
    while (length < limit) {
      const buffer = Buffer.alloc(Math.min(limit - length, Math.max(size + 1 - length, 4096)));
      const { bytesRead } = await file.read(buffer, 0, buffer.length);
      if (bytesRead === 0) break;
      parts.push(buffer.subarray(0, bytesRead));
      length += bytesRead;
    }
    return Buffer.concat(parts);
  } catch (error) {
    if (isShortage(error)) throw error;
    return { reason: messageOf(error) };
  }
}
