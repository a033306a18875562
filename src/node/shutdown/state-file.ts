import { readFile } from "node:fs/promises";
import { hasCode, saveFile } from "../../ground/base/index.ts";

/** When the node was last turned off, in milliseconds since 1970; no end: it did not get that far. */
export interface ShutdownState {
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
}

/** Go's way to write that there is no time. */
const noTime = "0001-01-01T00:00:00Z";

/** `graceful_node_shutdown_state`, in the form that kubelets read and write. */
export class ShutdownStateFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** What nobody can read any more is as good as nothing. */
  async load(): Promise<ShutdownState> {
    try {
      const { startTime, endTime } = JSON.parse(await readFile(this.#path, "utf8")) ?? {};
      return { startedAt: timeOf(startTime), endedAt: timeOf(endTime) };
    } catch (error) {
      if (hasCode(error, "ENOENT") || error instanceof SyntaxError) return { startedAt: undefined, endedAt: undefined };
      throw error;
    }
  }

  async save({ startedAt, endedAt }: ShutdownState): Promise<void> {
    const text = JSON.stringify({ startTime: textOf(startedAt), endTime: textOf(endedAt) });
    await saveFile(this.#path, text, 0o644);
  }
}

function timeOf(text: unknown): number | undefined {
  const time = typeof text === "string" && text !== noTime ? Date.parse(text) : Number.NaN;
  return Number.isNaN(time) ? undefined : time;
}

function textOf(time: number | undefined): string {
  return time === undefined ? noTime : new Date(time).toISOString();
}
