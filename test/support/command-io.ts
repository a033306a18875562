import type { CommandIo } from "../../src/beside/cli/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";

export interface RecordedIo {
  readonly io: CommandIo;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** As Ctrl-C does. */
  readonly interrupt: () => void;
}

/** What a command wrote, in a world without a terminal. */
export function recordIo(home: string): RecordedIo {
  const out: string[] = [];
  const err: string[] = [];
  const controller = new AbortController();
  const io: CommandIo = {
    stdout: { write: (text) => out.push(text) },
    stderr: { write: (text) => err.push(text) },
    isTTY: false,
    terminal: () => ({ columns: 80, rows: 24 }),
    signal: controller.signal,
    env: {},
    cwd: "/",
    home,
    clock: systemClock,
  };
  const interrupt = (): void => controller.abort(new DOMException("interrupted", "AbortError"));
  return { io, stdout: () => out.join(""), stderr: () => err.join(""), interrupt };
}
