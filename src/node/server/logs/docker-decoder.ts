import { type LineFilter, type LogDecoder, nothing } from "./decoder.ts";
import { isBefore, parseMoment, withNineDigits } from "./line-time.ts";

const newline = 0x0a;
// Docker splits at 16 KiB of text, which escaping may make six times as long; what is longer is no line of it.
const longestLine = 1024 * 1024;

/** Lines as Docker writes them: `{"log":"text\n","stream":"stdout","time":"…"}`. */
export class DockerDecoder implements LogDecoder {
  readonly #filter: LineFilter;
  #pending: Buffer = nothing;
  #continues = false;
  /** Inside a line that is longer than any of Docker's. */
  #skips = false;

  constructor(filter: LineFilter) {
    this.#filter = filter;
  }

  decode(chunk: Buffer): Buffer {
    const input = Buffer.concat([this.#pending, chunk]);
    const parts: Buffer[] = [];
    let at = 0;
    for (let end = input.indexOf(newline); end >= 0; end = input.indexOf(newline, at)) {
      if (!this.#skips && end - at <= longestLine) this.#line(input.toString("utf8", at, end), parts);
      this.#skips = false;
      at = end + 1;
    }
    this.#skips ||= input.length - at > longestLine;
    this.#pending = this.#skips ? nothing : Buffer.from(input.subarray(at));
    return Buffer.concat(parts);
  }

  flush(): Buffer {
    const parts: Buffer[] = [];
    this.#line(this.#pending.toString(), parts);
    this.#pending = nothing;
    this.#skips = false;
    return Buffer.concat(parts);
  }

  #line(text: string, parts: Buffer[]): void {
    const line = parseDockerLine(text);
    if (line === undefined) return;
    const { stream, since, timestamps } = this.#filter;
    if (stream !== "All" && line.stream !== stream.toLowerCase()) return;
    const moment = parseMoment(line.time);
    if (moment === undefined || (since !== undefined && isBefore(moment, since))) return;
    const prefix = timestamps && !this.#continues ? `${withNineDigits(line.time)} ` : "";
    this.#continues = !line.log.endsWith("\n");
    parts.push(Buffer.from(prefix + line.log));
  }
}

interface DockerLine {
  readonly log: string;
  readonly stream: string;
  readonly time: string;
}

export function parseDockerLine(text: string): DockerLine | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const { log, stream, time } = JSON.parse(text) as Partial<Record<keyof DockerLine, unknown>>;
    if (typeof log !== "string" || typeof time !== "string") return undefined;
    return { log, time, stream: typeof stream === "string" ? stream : "stdout" };
  } catch {
    return undefined;
  }
}
