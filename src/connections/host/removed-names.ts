import { closeSync, readSync } from "node:fs";
import { hasCode } from "../../ground/base/index.ts";
import { loadSyscalls } from "./syscalls.ts";

const [movedFrom, movedTo, deleted] = [0x40, 0x80, 0x200];
const headerBytes = 16;
const bufferBytes = 64 * 1024;
/** The kernel keeps 16384 notices at most; who makes more of them at once is looked at again with the next ones. */
const mostReads = 64;

/**
 * Which names have gone from a directory, also when they were back at once: deleted, or moved out of it. A name that was
 * given another file by renaming has not gone, nor one that was moved aside within the directory, as editors do.
 */
export class RemovedNames implements Disposable {
  readonly #fd: number;
  readonly #buffer = Buffer.alloc(bufferBytes);

  private constructor(fd: number) {
    this.#fd = fd;
  }

  static async of(directory: string): Promise<RemovedNames> {
    return new RemovedNames((await loadSyscalls()).watchInode(directory, movedFrom | movedTo | deleted));
  }

  /** Those since the last call. */
  take(): ReadonlySet<string> {
    const gone = new Set<string>();
    const movedAside = new Map<number, string>();
    for (let read = 0; read < mostReads; read++) {
      const length = this.#read();
      if (length === 0) break;
      for (const { mask, cookie, name } of noticesIn(this.#buffer.subarray(0, length))) {
        if ((mask & deleted) !== 0) gone.add(name);
        if ((mask & movedFrom) !== 0) movedAside.set(cookie, name);
        if ((mask & movedTo) !== 0) movedAside.delete(cookie);
      }
    }
    return new Set([...gone, ...movedAside.values()]);
  }

  #read(): number {
    try {
      return readSync(this.#fd, this.#buffer);
    } catch (error) {
      if (hasCode(error, "EAGAIN")) return 0;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

function* noticesIn(
  bytes: Buffer,
): Iterable<{ readonly mask: number; readonly cookie: number; readonly name: string }> {
  for (let at = 0; at + headerBytes <= bytes.length; ) {
    const nameBytes = bytes.readUInt32LE(at + 12);
    const name = bytes.subarray(at + headerBytes, at + headerBytes + nameBytes);
    const end = name.indexOf(0);
    yield {
      mask: bytes.readUInt32LE(at + 4),
      cookie: bytes.readUInt32LE(at + 8),
      name: name.toString("utf8", 0, end < 0 ? name.length : end),
    };
    at += headerBytes + nameBytes;
  }
}
