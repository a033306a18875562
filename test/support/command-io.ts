import type { CommandIo, TextSink, UserInput } from "../../src/beside/cli/io.ts";
import { systemClock } from "../../src/ground/base/index.ts";

const noInput: UserInput = {
  isTTY: false,
  setRaw: () => {},
  read: async function* () {},
  onResize: () => () => {},
};

export interface RecordedIo {
  readonly io: CommandIo;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** As Ctrl-C does. */
  readonly interrupt: () => void;
}

/** What a command wrote, in a world without a terminal. */
export function recordIo(home: string, input: UserInput = noInput): RecordedIo {
  const out: string[] = [];
  const err: string[] = [];
  const sinkOf = (lines: string[]): TextSink => ({
    write: (text, done) => {
      lines.push(typeof text === "string" ? text : Buffer.from(text).toString());
      done?.();
    },
  });
  const controller = new AbortController();
  const io: CommandIo = {
    stdout: sinkOf(out),
    stderr: sinkOf(err),
    input: () => input,
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
