import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { followOnDisks, openPath } from "../../../connections/host/index.ts";
import { hasCode } from "../../../ground/base/index.ts";
import { AnswerError } from "./answer-error.ts";
import { bytesOfText } from "./byte-text.ts";

/** Something below a directory, held open until disposed of. */
export type FoundBelow = AsyncDisposable &
  (
    | { readonly type: "file"; readonly handle: FileHandle }
    /** `path` leads to this very directory, whatever has become of its name. */
    | { readonly type: "directory"; readonly path: string }
  );

const notFound = (): AnswerError => new AnswerError(404, "404 page not found\n");

/** A pipe or a device that took a file's place must not make us wait, nor become our terminal. */
const reading = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;
const standing = openPath | constants.O_NOFOLLOW;

/**
 * Finds a regular file or a directory below `root`. Links may lead from one place below it to another, never out. The
 * way is walked by descriptors that stand for places and open nothing, so that whoever exchanges something meanwhile
 * gets us nowhere else, and no device is ever opened just to be looked at. What lies on a file server is not looked at:
 * one that is away would keep a thread of the agent's for ever.
 */
export async function findBelow(root: string, path: string): Promise<FoundBelow> {
  let place: FileHandle | undefined;
  try {
    const realRoot = await realPath(Buffer.from(root), root);
    const wanted = Buffer.concat([realRoot, Buffer.from("/"), bytesOfText(path)]);
    place = await walk(realRoot, below(realRoot, await realPath(wanted, root)));
    const stats = await place.stat();
    const self = `/proc/self/fd/${place.fd}`;
    if (stats.isDirectory()) {
      const held = place;
      return { type: "directory", path: self, [Symbol.asyncDispose]: () => held.close() };
    }
    if (!stats.isFile()) throw notFound();
    const handle = await open(self, reading);
    await place.close();
    return { type: "file", handle, [Symbol.asyncDispose]: () => handle.close() };
  } catch (error) {
    await place?.close().catch(() => {});
    if (error instanceof AnswerError) throw error;
    throw hasCode(error, "EACCES", "EPERM") ? new AnswerError(403, "403 Forbidden\n") : notFound();
  }
}

async function realPath(path: Buffer, root: string): Promise<Buffer> {
  const found = await followOnDisks(path, root);
  if ("path" in found) return found.path;
  const text = `what is mounted at ${found.mountPoint} may not answer, and is not served; read it where it comes from\n`;
  throw new AnswerError(503, text);
}

/** The names that lead from the root to a real path. */
function below(realRoot: Buffer, realPath: Buffer): readonly Buffer[] {
  if (realPath.equals(realRoot)) return [];
  const prefix = Buffer.concat([realRoot, Buffer.from("/")]);
  if (!realPath.subarray(0, prefix.length).equals(prefix)) throw notFound();
  const rest = realPath.subarray(prefix.length).toString("latin1");
  return rest.split("/").map((name) => Buffer.from(name, "latin1"));
}

/** A place that is reached without following any link. */
async function walk(realRoot: Buffer, names: readonly Buffer[]): Promise<FileHandle> {
  let place = await open(realRoot, standing);
  for (const name of names) {
    const parent = place;
    try {
      // Through a link that stands where a directory stood, nothing is found.
      place = await open(Buffer.concat([Buffer.from(`/proc/self/fd/${parent.fd}/`), name]), standing);
    } finally {
      await parent.close();
    }
  }
  return place;
}
