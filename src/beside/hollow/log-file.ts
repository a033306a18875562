import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { OutputStream } from "./behaviour.ts";

const longestLineBytes = 16_384;

/** A container's log as a runtime writes it: one line per line printed, each with time, stream and F or P. */
export class LogFile {
  readonly #path: string;
  readonly #nanoseconds: () => bigint;
  readonly #unfinished = new Map<OutputStream, string>();
  #file: number | undefined;

  constructor(path: string, nanoseconds: () => bigint) {
    this.#path = path;
    this.#nanoseconds = nanoseconds;
  }

  /** Opens the file, anew when it was open. Without its directory nothing is written. */
  open(): void {
    this.#closeFile();
    if (this.#path !== "" && existsSync(dirname(this.#path))) this.#file = openSync(this.#path, "a", 0o640);
  }

  print(stream: OutputStream, text: string): void {
    const lines = ((this.#unfinished.get(stream) ?? "") + text).split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) this.#write(stream, line, "F");
    this.#unfinished.set(stream, rest);
  }

  close(): void {
    for (const [stream, rest] of this.#unfinished) if (rest !== "") this.#write(stream, rest, "P");
    this.#unfinished.clear();
    this.#closeFile();
  }

  #write(stream: OutputStream, line: string, tag: "F" | "P"): void {
    if (this.#file === undefined) return;
    let rest = Buffer.from(line);
    while (rest.length > longestLineBytes) {
      this.#writeEntry(stream, "P", rest.subarray(0, longestLineBytes));
      rest = rest.subarray(longestLineBytes);
    }
    this.#writeEntry(stream, tag, rest);
  }

  #writeEntry(stream: OutputStream, tag: "F" | "P", content: Buffer): void {
    if (this.#file === undefined) return;
    writeSync(
      this.#file,
      Buffer.concat([Buffer.from(`${rfc3339(this.#nanoseconds())} ${stream} ${tag} `), content, newline]),
    );
  }

  #closeFile(): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }
}

const newline = Buffer.from("\n");

/** Nanosecond time as Go prints it: no trailing zeros in the fraction. */
export function rfc3339(nanoseconds: bigint): string {
  const seconds = new Date(Number(nanoseconds / 1_000_000n)).toISOString().slice(0, 19);
  const fraction = String(nanoseconds % 1_000_000_000n)
    .padStart(9, "0")
    .replace(/0+$/, "");
  return `${seconds}${fraction === "" ? "" : `.${fraction}`}Z`;
}
