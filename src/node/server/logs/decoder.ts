import type { Moment } from "./line-time.ts";

/** Which lines of a log are wanted, and how. */
export interface LineFilter {
  /** Older lines are left out. */
  readonly since: Moment | undefined;
  readonly timestamps: boolean;
  readonly stream: "All" | "Stdout" | "Stderr";
}

/** Turns the bytes of a log file, in pieces of any size, into what the container wrote. */
export interface LogDecoder {
  /** The result may lie in the memory of `chunk`, which is spent afterwards. */
  decode(chunk: Buffer): Buffer;
  /** What a last line without its end has to give when nothing more will come. */
  flush(): Buffer;
}

export const nothing: Buffer = Buffer.alloc(0);
