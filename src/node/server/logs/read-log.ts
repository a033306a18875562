import { dirname } from "node:path";
import type { Clock } from "../../../ground/base/index.ts";
import { ChangeWait } from "./change-wait.ts";
import { chooseDecoder } from "./choose-decoder.ts";
import { type LineFilter, type LogDecoder, nothing } from "./decoder.ts";
import { closeAll, type LogPart, liveInode, openChain, readPart, unpackedSize } from "./log-part.ts";
import { findTail, LineSkipper, type TailStart } from "./tail.ts";

export interface LogRequest extends LineFilter {
  /** The live file. */
  readonly path: string;
  /** undefined: from the oldest line there is. */
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
  /** undefined: what there is now. Else until the container has ended. */
  readonly follow: ContainerLife | undefined;
}

/** Whether more may be written to a log. */
export interface ContainerLife {
  hasEnded(): boolean;
  /** Calls back when the answer may have changed, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** Takes what was read, perhaps nothing; resolves when its memory may be used again. */
export type LogSink = (bytes: Buffer) => Promise<void>;

const longestWaitMs = 1_000;
// A runtime may finish the line it was writing into the old file after the new one is there.
const settleMs = 50;
const freshMs = 2_000;

/**
 * Writes a container's log to the sink: rotated files, compressed or not, then the live one; when following, on
 * through any number of rotations. No line is left out or given twice.
 */
export async function readLog(request: LogRequest, sink: LogSink, clock: Clock, signal: AbortSignal): Promise<void> {
  const output = new Output(request, sink);
  using wait = request.follow === undefined ? undefined : new ChangeWait(dirname(request.path), clock);
  const { parts, stamps } = await openChain(request.path);
  const open = new Set(parts);
  try {
    const start = await startOf(parts, request);
    const last = parts.length - 1;
    for (const [index, part] of parts.entries()) {
      signal.throwIfAborted();
      const following = index === last && wait !== undefined && request.follow !== undefined;
      if (index >= start.part) {
        const skip = index === start.part ? start.skip : 0;
        // The live file is not at its end just because we are.
        if (index === last) await copy(part, skip, output, signal);
        else await copyToEnd(part, skip, output, clock, signal);
        if (!following) await output.endOfPart();
      }
      if (output.isFull) return;
      if (following)
        return await follow({ part, stamps, request, output, wait, life: request.follow, clock, open }, signal);
      open.delete(part);
      await part.handle.close();
    }
  } finally {
    await closeAll(open);
  }
}

async function startOf(parts: readonly LogPart[], { tailLines, since }: LogRequest): Promise<TailStart> {
  const tail = tailLines === undefined ? { part: 0, skip: 0 } : await findTail(parts, tailLines);
  if (since === undefined) return tail;
  // A file last written before that time has no line of interest. A second more is for clocks of file systems.
  const first = parts.findIndex(({ modifiedMs }) => modifiedMs / 1000 + 1 >= since.seconds);
  const earliest = first < 0 ? parts.length - 1 : first;
  return earliest > tail.part ? { part: earliest, skip: 0 } : tail;
}

async function copy(part: LogPart, skip: number, output: Output, signal: AbortSignal): Promise<void> {
  const lines = part.compressed ? new LineSkipper(skip) : undefined;
  for await (const chunk of readPart(part, part.compressed ? 0 : skip, part.size)) {
    signal.throwIfAborted();
    await output.push(lines === undefined ? chunk : lines.take(chunk));
    if (output.isFull) return;
  }
}

/** A file that was set aside just now may get its last lines only now. */
async function copyToEnd(
  part: LogPart,
  skip: number,
  output: Output,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  await copy(part, skip, output, signal);
  if (part.compressed || Math.abs(clock.now() - part.changedMs) > freshMs) return;
  let position = part.size;
  for (let before = -1; position !== before && !output.isFull; ) {
    before = position;
    await clock.sleep(settleMs, signal);
    position = await drain(part, position, output, signal);
  }
}

interface Following {
  part: LogPart;
  stamps: ReadonlySet<string>;
  readonly request: LogRequest;
  readonly output: Output;
  readonly wait: ChangeWait;
  readonly life: ContainerLife;
  readonly clock: Clock;
  readonly open: Set<LogPart>;
}

async function follow(state: Following, signal: AbortSignal): Promise<void> {
  const { request, output, wait, life, clock, open } = state;
  const stopListening = life.onChange(() => wait.notify());
  try {
    let position = state.part.size;
    while (!signal.aborted) {
      // Asked before reading: what was written before the end is read after it.
      const ended = life.hasEnded();
      const before = position;
      position = await drain(state.part, position, output, signal);
      if (output.isFull) return;
      const live = await liveInode(request.path);
      if (live !== undefined && live !== state.part.inode) {
        await clock.sleep(settleMs, signal);
        const settled = position;
        position = await drain(state.part, position, output, signal);
        if (position !== settled) continue;
        await output.endOfPart();
        position = await moveOn(state, signal);
        if (output.isFull) return;
      } else if (ended && position === before) return await output.endOfPart();
      else if (!ended) {
        await output.announce();
        await wait.wait(position !== before, longestWaitMs, signal);
      }
    }
    signal.throwIfAborted();
  } finally {
    stopListening();
    open.add(state.part);
  }
}

/** Reads on to the present end; returns where that is. */
async function drain(part: LogPart, from: number, output: Output, signal: AbortSignal): Promise<number> {
  const { size } = await part.handle.stat();
  // Somebody emptied the file in place.
  let position = size < from ? 0 : from;
  for await (const chunk of readPart({ ...part, compressed: false }, position, size)) {
    signal.throwIfAborted();
    position += chunk.length;
    await output.push(chunk);
    if (output.isFull) break;
  }
  return position;
}

/** From a file that was rotated to the next: those rotated since are read through, the live one becomes ours. */
async function moveOn(state: Following, signal: AbortSignal): Promise<number> {
  const { request, output, open } = state;
  const { parts, stamps } = await successors(state);
  for (const part of parts) open.add(part);
  open.delete(state.part);
  await state.part.handle.close();
  const live = parts.at(-1);
  if (live === undefined) throw new Error(`the log ${request.path} has gone`);
  for (const part of parts) {
    if (part === live) break;
    await copyToEnd(part, 0, output, state.clock, signal);
    await output.endOfPart();
    open.delete(part);
    await part.handle.close();
    if (output.isFull) break;
  }
  state.part = live;
  state.stamps = stamps;
  return 0;
}

/** What came after the file that we have read, oldest first, the live one last. */
async function successors({ part, stamps, request }: Following) {
  const { parts: all, stamps: now } = await openChain(request.path);
  const newer = all.filter(({ name }) => !isKnown(name, stamps));
  const [first] = newer;
  // The first of those rotated since is the file we had, unless it is deleted already.
  const isOurs = first !== undefined && first !== newer.at(-1) && (await isSameFile(first, part));
  const parts = isOurs ? newer.slice(1) : newer;
  await closeAll(all.filter((candidate) => !parts.includes(candidate)));
  return { parts, stamps: now };
}

function isKnown(name: string, stamps: ReadonlySet<string>): boolean {
  const stamp = /\.(\d{8}-\d{6})(\.gz)?$/.exec(name)?.[1];
  return stamp !== undefined && stamps.has(stamp);
}

async function isSameFile(candidate: LogPart, read: LogPart): Promise<boolean> {
  if (!candidate.compressed) return candidate.inode === read.inode;
  const { size } = await read.handle.stat();
  return (await unpackedSize(candidate)) === size % 2 ** 32;
}

/** Decodes and passes on, up to the limit. */
class Output {
  readonly #filter: LineFilter;
  readonly #sink: LogSink;
  #decoder: LogDecoder | undefined;
  /** The start of the log as long as it does not tell its format. */
  #start: Buffer = nothing;
  #left: number;
  #announced = false;

  constructor(request: LogRequest, sink: LogSink) {
    this.#filter = request;
    this.#sink = sink;
    this.#left = request.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  get isFull(): boolean {
    return this.#left <= 0;
  }

  async push(chunk: Buffer): Promise<void> {
    if (this.#decoder !== undefined) return await this.#send(this.#decoder.decode(chunk));
    const start = this.#start.length === 0 ? chunk : Buffer.concat([this.#start, chunk]);
    this.#decoder = start.length === 0 ? undefined : chooseDecoder(start, this.#filter);
    if (this.#decoder === undefined) this.#start = Buffer.from(start);
    else {
      this.#start = nothing;
      await this.#send(this.#decoder.decode(start));
    }
  }

  /** Lets the reader know that all is well although there may be nothing to read for long. */
  async announce(): Promise<void> {
    if (this.#announced) return;
    this.#announced = true;
    await this.#sink(nothing);
  }

  /** A file has ended: a line without its end ends with it. */
  async endOfPart(): Promise<void> {
    if (this.#decoder !== undefined) await this.#send(this.#decoder.flush());
  }

  async #send(bytes: Buffer): Promise<void> {
    const allowed = bytes.length > this.#left ? bytes.subarray(0, this.#left) : bytes;
    this.#left -= allowed.length;
    if (allowed.length > 0) await this.#sink(allowed);
  }
}
