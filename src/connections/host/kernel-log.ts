import { constants, readSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { codeOf } from "../../ground/base/index.ts";

export interface KernelRecord {
  /** Counts up by one from record to record, from the boot on. */
  readonly seq: number;
  /** Microseconds since the boot. */
  readonly micros: number;
  readonly text: string;
}

/** The kernel hands out one record at a time, and none is longer. */
const longestRecord = 8 * 1024;

/** Everything that the kernel says, and only the kernel: programs may write there too, under another name than its. */
export class KernelLog implements AsyncDisposable {
  readonly #file: FileHandle;
  readonly #buffer = Buffer.alloc(longestRecord);

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Begins with the oldest record that the kernel still has. */
  static async open(path = "/dev/kmsg"): Promise<KernelLog> {
    return new KernelLog(await open(path, constants.O_RDONLY | constants.O_NONBLOCK));
  }

  /** Records that have come since the last time; fewer than `most`: there are no more. Never waits. */
  read(most: number): readonly KernelRecord[] {
    const records: KernelRecord[] = [];
    for (let reads = 0; records.length < most && reads < 2 * most; reads++) {
      const record = this.#next();
      if (record === "no more") return records;
      if (record !== undefined) records.push(record);
    }
    return records;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close();
  }

  #next(): KernelRecord | "no more" | undefined {
    try {
      const length = readSync(this.#file.fd, this.#buffer, 0, longestRecord, null);
      if (length === 0) return "no more";
      return parseRecord(this.#buffer.toString("utf8", 0, length)) ?? { seq: -1, micros: 0, text: "" };
    } catch (error) {
      // Some were overwritten before we came: the next read goes on with the oldest that is left.
      if (codeOf(error) === "EPIPE" || codeOf(error) === "EINVAL") return undefined;
      if (codeOf(error) === "EAGAIN") return "no more";
      throw error;
    }
  }
}

/** `priority,sequence,microseconds,flags;text`, and lines of further fields; undefined: it is not the kernel's. */
function parseRecord(bytes: string): KernelRecord | undefined {
  const match = /^(\d+),(\d+),(\d+)[^;]*;([^\n]*)/.exec(bytes);
  if (match === null) return undefined;
  const [, priority, seq, micros, text = ""] = match;
  // The facility is above the three bits of the level; 0 is the kernel, which nobody else can claim to be.
  return Number(priority) >> 3 === 0 ? { seq: Number(seq), micros: Number(micros), text } : undefined;
}
