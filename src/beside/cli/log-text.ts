import { jsonAnswer } from "./answer.ts";
import type { InContainer } from "./local-client.ts";
import { visible } from "./visible-text.ts";

/** A line that does not end would fill the memory: it is shown in pieces. */
const longestLineBytes = 1024 * 1024;

export interface LogPiece {
  readonly bytes: Buffer;
  /** False: the line goes on. */
  readonly isEnd: boolean;
}

/** What comes in pieces as lines, without their line ends. */
export async function* logLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<LogPiece, void> {
  let open: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    open = open.length === 0 ? Buffer.from(chunk) : Buffer.concat([open, chunk]);
    let from = 0;
    for (let at = open.indexOf(10); at >= 0; at = open.indexOf(10, from)) {
      yield { bytes: open.subarray(from, at), isEnd: true };
      from = at + 1;
    }
    open = open.subarray(from);
    if (open.length >= longestLineBytes) {
      yield { bytes: open, isEnd: false };
      open = Buffer.alloc(0);
    }
  }
  if (open.length > 0) yield { bytes: open, isEnd: true };
}

/** One line of a log for programs; the agent was asked for times. */
export function logLineJson({ namespace, pod, container }: InContainer, { bytes, isEnd }: LogPiece): string {
  const text = bytes.toString();
  const [, time, message = text] = /^(\d{4}-\d\d-\d\dT\S+) (.*)$/s.exec(text) ?? [];
  const where = { namespace, pod, container };
  return jsonAnswer(
    "LogLine",
    { ...where, ...(time !== undefined && { time }), message, ...(!isEnd && { goesOn: true }) },
    0,
  );
}

/** Names before each line, in the form of kubectl. */
export function prefixOf({ pod, container }: InContainer): string {
  return `[pod/${pod}/${container}] `;
}

/** Text as people see it, though it comes in pieces: characters and line ends may be cut in two by them. */
export class VisibleStream {
  readonly #decoder = new TextDecoder();
  #held = "";

  show(chunk: Uint8Array): string {
    return this.#shown(this.#decoder.decode(chunk, { stream: true }));
  }

  end(): string {
    const rest = this.#held + this.#decoder.decode();
    this.#held = "";
    return visible(rest);
  }

  /** Terminals of containers end lines with both. */
  #shown(decoded: string): string {
    const text = this.#held + decoded;
    this.#held = text.endsWith("\r") ? "\r" : "";
    return visible((this.#held === "" ? text : text.slice(0, -1)).replaceAll("\r\n", "\n"));
  }
}
