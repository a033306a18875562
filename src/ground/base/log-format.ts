import { explain } from "./errors.ts";
import { goEscape, goQuote } from "./go-quote.ts";
import type { LogFields } from "./log.ts";
import { isSecret, redactingReplacer, redactText } from "./redact.ts";

export interface LogRecord {
  readonly severity: "info" | "warning" | "error" | "fatal";
  readonly at: number;
  /** The level the line was asked for at; 0 for all but debug lines. */
  readonly verbosity: number;
  readonly component: string;
  readonly message: string;
  /** undefined: the line is not about an error. */
  readonly error: { readonly value: unknown } | undefined;
  readonly fields: LogFields | undefined;
}

/** One line, its line break included. */
export type LogFormat = (record: LogRecord, pid: number) => string;

const letters = { info: "I", warning: "W", error: "E", fatal: "F" } as const;

/** klog's text: `I1115 20:51:44.123456   12345 component:0] "message" key="value"`. */
export const formatText: LogFormat = (record, pid) => {
  const at = new Date(record.at);
  const day = `${two(at.getMonth() + 1)}${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  const micros = `${String(at.getMilliseconds()).padStart(3, "0")}000`;
  const head = `${letters[record.severity]}${day} ${time}.${micros} ${String(pid).padStart(7)} ${record.component}:0]`;
  let line = `${head} ${goQuote(redactText(record.message))}`;
  if (record.error !== undefined) line += ` err${textValue(redactText(explain(record.error.value)))}`;
  for (const [key, value] of Object.entries(record.fields ?? {})) {
    if (value !== undefined) line += ` ${key}${fieldText(key, value)}`;
  }
  return `${line}\n`;
};

/** klog's JSON as its Kubernetes components write it: ts in milliseconds, v on lines that are not errors. */
export const formatJson: LogFormat = (record) => {
  const { severity } = record;
  const isError = severity === "error" || severity === "fatal";
  const head = {
    ts: record.at,
    caller: `${record.component}:0`,
    msg: redactText(record.message),
    ...(isError ? {} : { v: record.verbosity }),
    // klog's JSON cannot tell a warning from other lines; readers that filter can with this.
    ...(severity === "warning" || severity === "fatal" ? { severity } : {}),
    ...(record.error === undefined ? {} : { err: redactText(explain(record.error.value)) }),
  };
  return `${toJson({ ...head, ...withoutReserved(record.fields, head) })}\n`;
};

function withoutReserved(fields: LogFields | undefined, head: Readonly<Record<string, unknown>>): LogFields {
  return Object.fromEntries(Object.entries(fields ?? {}).filter(([key]) => !(key in head)));
}

function fieldText(key: string, value: unknown): string {
  if (isSecret(key, value)) return '="<masked>"';
  if (typeof value === "string") return textValue(redactText(value));
  if (value instanceof Error) return textValue(redactText(explain(value)));
  if (value instanceof Date) return textValue(Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString());
  if (value instanceof Uint8Array) return `=${goQuote(Buffer.from(value).toString("utf8"))}`;
  return `=${toJson(value)}`;
}

/** A single line is quoted; several lines are shown as they are, each behind a tab so that none can pass for a header. */
function textValue(text: string): string {
  if (!text.includes("\n")) return `=${goQuote(text)}`;
  const body = text.endsWith("\n") ? text.slice(0, -1) : text;
  const lines = body.split("\n").map((line) => `\t${line.replace(unsafeInLine, goEscape)}\n`);
  return `=<\n${lines.join("")} >`;
}

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value, redactingReplacer) ?? "null";
  } catch (error) {
    return JSON.stringify(`<internal error: ${explain(error)}>`);
  }
}

const unsafeInLine = /[^\p{L}\p{M}\p{N}\p{P}\p{S} \t]/gu;

function two(value: number): string {
  return String(value).padStart(2, "0");
}
