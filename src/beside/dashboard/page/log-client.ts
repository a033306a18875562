import { type LogLine, secondsOf } from "./log-order.ts";
import { readRefusal } from "./refused.ts";
import { keyHeaders } from "./session-key.ts";

/** What was asked for and how. */
export interface LogQuestion {
  readonly uid: string;
  /** Empty: all. */
  readonly containers: readonly string[];
  readonly previous: boolean;
  readonly follow: boolean;
}

function logAddress(
  { uid, containers, previous, follow }: LogQuestion,
  more: Readonly<Record<string, string>>,
): string {
  const query = new URLSearchParams(more);
  for (const container of containers) query.append("container", container);
  if (previous) query.set("previous", "");
  if (follow) query.set("follow", "");
  return `api/logs/${encodeURIComponent(uid)}?${query}`;
}

/** Reads until the log or the reader ends; hands lines on in bundles. */
export async function followLog(
  question: LogQuestion,
  onLines: (lines: readonly LogLine[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(logAddress(question, { tail: "2000" }), { headers: keyHeaders(), signal });
  if (!response.ok || response.body === null) throw await readRefusal(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let number = 0;
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    const more = lines.filter((line) => line !== "").map((line) => lineOf(line, number++, at));
    at = more.at(-1)?.at ?? at;
    onLines(more);
  }
}

/** The whole log as a file. Not by a link: links carry no key. */
export async function downloadLog(question: LogQuestion, fileName: string): Promise<void> {
  const response = await fetch(logAddress(question, { download: "" }), { headers: keyHeaders() });
  if (!response.ok) throw await readRefusal(response);
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = fileName;
  link.click();
  URL.revokeObjectURL(address);
}

function lineOf(line: string, number: number, before: number): LogLine {
  const [, container, time = "", text = ""] = /^(\d+) (\S+) ?(.*)$/s.exec(line) ?? [];
  if (container === undefined) {
    return { number, container: undefined, time: "", at: before, text: line.replace(/^! /, "") };
  }
  return { number, container: Number(container), time, at: secondsOf(time) ?? before, text };
}
