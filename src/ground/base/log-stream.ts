import { fstatSync, write } from "node:fs";
import { Socket } from "node:net";
import type { Clock, Timer } from "./clock.ts";

/** Writes some of the bytes and says how many; the error code is that of the system. */
export type WriteBytes = (bytes: Uint8Array, done: (error: WriteFailure | null, written: number) => void) => void;

interface WriteFailure {
  readonly message?: string;
  readonly code?: string | undefined;
}

export function toDescriptor(fd: number): WriteBytes {
  let writeBytes: WriteBytes | undefined;
  return (bytes, done) => {
    writeBytes ??= takesTurns(fd) ? throughSocket(fd) : throughThread(fd);
    writeBytes(bytes, done);
  };
}

/** True for what has a reader that may stall: a pipe, or the socket that systemd gives a service. */
function takesTurns(fd: number): boolean {
  try {
    const stats = fstatSync(fd);
    return stats.isFIFO() || stats.isSocket();
  } catch {
    return false;
  }
}

// A thread that is blocked by a stalled reader would keep the process from exiting; the event loop just waits.
function throughSocket(fd: number): WriteBytes {
  const socket = new Socket({ fd, readable: false, writable: true });
  socket.on("error", () => {});
  return (bytes, done) => void socket.write(bytes, (error) => done(error ?? null, bytes.length));
}

function throughThread(fd: number): WriteBytes {
  return (bytes, done) => write(fd, bytes, 0, bytes.length, null, (error, written) => done(error, written));
}

// More than this waiting for a stalled reader is dropped rather than kept: the agent outlives its log.
const longestQueueBytes = 4 * 1024 * 1024;
const retryFullPipeMs = 10;

/**
 * Lines on their way to one descriptor. Those of one turn of the event loop leave in one write, in order, without
 * blocking the agent when the reader stalls.
 */
export class LogStream {
  readonly #write: WriteBytes;
  readonly #clock: Clock;
  #lines: string[] = [];
  #queuedLength = 0;
  #dropped = 0;
  #busySince: number | undefined;
  #scheduled: Timer | "soon" | undefined;
  #idle: (() => void)[] = [];
  /** Keep up to this much for up to that long before writing; zero bytes: write with the present turn. */
  #buffer: { readonly bytes: number; readonly flushMs: number };

  constructor(writeBytes: WriteBytes, clock: Clock, buffer = { bytes: 0, flushMs: 0 }) {
    this.#write = writeBytes;
    this.#clock = clock;
    this.#buffer = buffer;
  }

  setBuffer(buffer: { readonly bytes: number; readonly flushMs: number }): void {
    this.#buffer = buffer;
    // What waits by the time of before would make the lines to come wait for it, too.
    if (this.#scheduled !== "soon") this.#cancelTimer();
    if (this.#lines.length > 0) this.#schedule();
  }

  push(line: string): void {
    if (this.#queuedLength + line.length > longestQueueBytes) {
      this.#dropped++;
      return;
    }
    this.#lines.push(line);
    this.#queuedLength += line.length;
    this.#schedule();
  }

  /** How many lines were lost to a stalled reader since last asked. */
  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  /** How long the present write has not come to its end; 0 when none is under way. */
  get stalledMs(): number {
    return this.#busySince === undefined ? 0 : this.#clock.monotonic() - this.#busySince;
  }

  /** Resolves when all lines so far have left. A stalled reader makes it wait: give up from outside. */
  async flush(): Promise<void> {
    if (this.#busySince === undefined && this.#lines.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle.push(resolve);
      this.#drain();
    });
  }

  #schedule(): void {
    if (this.#busySince !== undefined) return;
    const { bytes, flushMs } = this.#buffer;
    if (this.#queuedLength >= bytes) {
      if (this.#scheduled === "soon") return;
      this.#cancelTimer();
      this.#scheduled = "soon";
      setImmediate(() => {
        this.#scheduled = undefined;
        this.#drain();
      });
    } else {
      this.#scheduled ??= this.#clock.after(flushMs, () => {
        this.#scheduled = undefined;
        this.#drain();
      });
    }
  }

  #cancelTimer(): void {
    if (this.#scheduled !== undefined && this.#scheduled !== "soon") this.#scheduled.cancel();
    this.#scheduled = undefined;
  }

  #drain(): void {
    if (this.#busySince !== undefined) return;
    if (this.#lines.length === 0) {
      for (const resolve of this.#idle.splice(0)) resolve();
      return;
    }
    if (this.#scheduled !== "soon") this.#cancelTimer();
    const bytes = Buffer.from(this.#lines.join(""));
    this.#lines = [];
    this.#queuedLength = 0;
    this.#busySince = this.#clock.monotonic();
    this.#send(bytes);
  }

  #send(bytes: Uint8Array): void {
    this.#write(bytes, (error, written) => {
      if (error === null && written < bytes.length) this.#send(bytes.subarray(written));
      else if (error?.code === "EAGAIN") this.#clock.after(retryFullPipeMs, () => this.#send(bytes));
      else {
        // Any other error means that nobody reads: there is no place left to say so.
        this.#busySince = undefined;
        if (this.#idle.length > 0) this.#drain();
        else if (this.#lines.length > 0) this.#schedule();
      }
    });
  }
}
