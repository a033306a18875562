import { type LineFilter, type LogDecoder, nothing } from "./decoder.ts";
import { isBefore, TimeScanner } from "./line-time.ts";

const newline = 0x0a;
const space = 0x20;
// Time, stream and tags of any runtime fit in; a line whose head is longer is none.
const longestHead = 256;
const shortestTime = "2006-01-02T15:04:05Z".length;

/**
 * Lines as CRI runtimes write them: `<time> <stdout|stderr> <tags> <content>`. Content is passed on as it comes, so
 * that a line may be of any length; what is kept between two calls is at most the head of a line.
 */
export class CriDecoder implements LogDecoder {
  readonly #filter: LineFilter;
  readonly #readsTime: boolean;
  readonly #time = new TimeScanner();
  readonly #head: LineHead = { timeEnd: 0, content: 0, isError: false, isPartial: false };
  /** `head`: at the start of a line. `pass`, `passPartial`: inside wanted content. `skip`: inside any other. */
  #state: "head" | "pass" | "passPartial" | "skip" = "head";
  #pending: Buffer = nothing;
  /** The line before was partial, so that the next one goes on where it ended. */
  readonly #continues = { stdout: false, stderr: false };

  constructor(filter: LineFilter) {
    this.#filter = filter;
    this.#readsTime = filter.since !== undefined || filter.timestamps;
  }

  decode(chunk: Buffer): Buffer {
    const input = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    this.#pending = nothing;
    // Without times the result is shorter than the input and fits into its place; a time may grow by ten bytes.
    const output = this.#filter.timestamps ? Buffer.allocUnsafe(Math.ceil(input.length * 1.5) + 64) : input;
    let read = 0;
    let written = 0;
    while (read < input.length) {
      if (this.#state === "head") {
        const verdict = this.#readHead(input, read);
        if (verdict === "incomplete") break;
        if (verdict === "skip") {
          this.#state = "skip";
          continue;
        }
        if (this.#filter.timestamps) written = this.#writeTime(input, read, output, written);
        this.#state = this.#head.isPartial ? "passPartial" : "pass";
        read = this.#head.content;
        continue;
      }
      const end = input.indexOf(newline, read);
      const next = end < 0 ? input.length : end + 1;
      if (this.#state !== "skip") {
        const stop = this.#state === "passPartial" && end >= 0 ? end : next;
        if (output !== input) output.set(input.subarray(read, stop), written);
        else if (written !== read) input.copyWithin(written, read, stop);
        written += stop - read;
      }
      if (end >= 0) this.#state = "head";
      read = next;
    }
    return output.subarray(0, written);
  }

  flush(): Buffer {
    this.#pending = nothing;
    this.#state = "head";
    return nothing;
  }

  /** Reads the head of the line at `at`; keeps what there is of it when the rest is still to come. */
  #readHead(input: Buffer, at: number): "wanted" | "incomplete" | "skip" {
    const head = this.#head;
    const found = parseHead(input, at, head);
    if (found === "incomplete") {
      if (input.length - at > longestHead) return "skip";
      this.#pending = Buffer.from(input.subarray(at));
      return "incomplete";
    }
    if (found === "invalid") return "skip";
    const { stream, since } = this.#filter;
    if (stream === (head.isError ? "Stdout" : "Stderr")) return "skip";
    if (!this.#readsTime) return "wanted";
    if (!this.#time.scan(input, at, head.timeEnd)) return "skip";
    return since !== undefined && isBefore(this.#time, since) ? "skip" : "wanted";
  }

  /** The time with nine digits in its fraction and a space, unless the line goes on from a partial one. */
  #writeTime(input: Buffer, at: number, output: Buffer, to: number): number {
    const stream = this.#head.isError ? "stderr" : "stdout";
    const continues = this.#continues[stream];
    this.#continues[stream] = this.#head.isPartial;
    if (continues) return to;
    const { fractionStart, fractionEnd } = this.#time;
    if (fractionEnd - fractionStart === 9) {
      output.set(input.subarray(at, this.#head.timeEnd + 1), to);
      return to + this.#head.timeEnd + 1 - at;
    }
    let written = to + input.copy(output, to, at, at + shortestTime - 1);
    output[written++] = 0x2e;
    const digits = Math.min(fractionEnd - fractionStart, 9);
    written += input.copy(output, written, fractionStart, fractionStart + digits);
    for (let missing = 9 - digits; missing > 0; missing--) output[written++] = 0x30;
    written += input.copy(output, written, fractionEnd, this.#head.timeEnd);
    output[written++] = space;
    return written;
  }
}

interface LineHead {
  timeEnd: number;
  /** Where the content begins. */
  content: number;
  isError: boolean;
  isPartial: boolean;
}

/** Fills `head`; it is the same object for each line, because there are millions of them. */
function parseHead(input: Buffer, at: number, head: LineHead): "found" | "incomplete" | "invalid" {
  const timeEnd = endOfWord(input, at, at + shortestTime);
  if (timeEnd < 0) return timeEnd === invalid ? "invalid" : "incomplete";
  // Enough to tell a line of a log from anything else without reading the time of each.
  if (input[at + 4] !== 0x2d || input[at + 10] !== 0x54) return "invalid";
  const streamStart = timeEnd + 1;
  const tagStart = streamStart + 7;
  if (tagStart + 1 >= input.length) return "incomplete";
  const isError = input[streamStart + 3] === 0x65;
  if (!isStream(input, streamStart, isError)) return "invalid";
  const tagEnd = input[tagStart + 1] === space ? tagStart + 1 : endOfWord(input, tagStart, tagStart);
  if (tagEnd < 0) return tagEnd === invalid ? "invalid" : "incomplete";
  const tag = input[tagStart];
  const firstTagEnds = tagEnd === tagStart + 1 || input[tagStart + 1] === 0x3a;
  if (!firstTagEnds || (tag !== 0x46 && tag !== 0x50)) return "invalid";
  head.timeEnd = timeEnd;
  head.content = tagEnd + 1;
  head.isError = isError;
  head.isPartial = tag === 0x50;
  return "found";
}

const incomplete = -1;
const invalid = -2;

/** The space that ends a word. */
function endOfWord(input: Buffer, at: number, from: number): number {
  for (let index = from; index < input.length; index++) {
    const byte = input[index];
    if (byte === space) return index;
    if (byte === newline || index - at > longestHead) return invalid;
  }
  return incomplete;
}

function isStream(input: Buffer, at: number, isError: boolean): boolean {
  // "std", then "out" or "err", then a space.
  return (
    input[at] === 0x73 &&
    input[at + 1] === 0x74 &&
    input[at + 2] === 0x64 &&
    input[at + 6] === space &&
    (isError
      ? input[at + 4] === 0x72 && input[at + 5] === 0x72
      : input[at + 3] === 0x6f && input[at + 4] === 0x75 && input[at + 5] === 0x74)
  );
}
