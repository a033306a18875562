// Docker's log of a container (a JSON object a line) in the form that CRI has for logs. Pure.
import { fieldsOf, textIn } from "../engine/index.ts";

export interface LogEntry {
  /** As Docker wrote it: RFC 3339 with up to nine digits. */
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

const timeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

/** Undefined for a line that is none, such as what a full disk leaves. */
export function parseEntry(line: string): LogEntry | undefined {
  let value: unknown;
  try {
    // A disk that was full, or a rotation cut short, may leave zeros where a line should begin.
    value = JSON.parse(line.replace(/^\0+/, ""));
  } catch {
    return undefined;
  }
  const fields = fieldsOf(value);
  const time = textIn(fields, "time");
  if (!timeForm.test(time)) return undefined;
  return { time, stream: textIn(fields, "stream") === "stderr" ? "stderr" : "stdout", text: textIn(fields, "log") };
}

/** A line of ours: F when the container ended it, P when it goes on in the next. */
export function criLine({ time, stream, text: content }: LogEntry): string {
  const isWhole = content.endsWith("\n");
  const body = isWhole ? content.slice(0, -1) : content;
  return `${time} ${stream} ${isWhole ? "F" : "P"} ${body}\n`;
}

/** The end of what was written: how many of the last entries have the time of the last one. */
export interface LastWritten {
  readonly time: string;
  readonly stream: string;
  readonly count: number;
}

/** `lines`: whole ones, as at the end of the file. */
export function lastWritten(lines: readonly string[]): LastWritten | undefined {
  let last: { time: string; stream: string } | undefined;
  let count = 0;
  for (const line of lines.toReversed()) {
    const [time = "", stream = ""] = line.split(" ", 2);
    if (!timeForm.test(time)) break;
    last ??= { time, stream };
    if (time !== last.time || stream !== last.stream) break;
    count++;
  }
  return last === undefined ? undefined : { ...last, count };
}

/**
 * Skips what was written already: entries up to the one that was last. Parts of a long line have the same time, so they
 * are counted. Where that entry is not there any more, what is newer counts as not written.
 */
export function isOld(entry: LogEntry, last: LastWritten, seen: { count: number }): boolean {
  if (entry.time === last.time && entry.stream === last.stream) {
    seen.count++;
    return seen.count <= last.count;
  }
  return seen.count === 0;
}
