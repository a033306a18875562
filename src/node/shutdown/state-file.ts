import { readFile } from "node:fs/promises";
import { hasCode, saveFile } from "../../ground/base/index.ts";

/** When the node was last turned off, in milliseconds since 1970; no end: it did not get that far. */
export interface ShutdownState {
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
}

/** As an agent finds it when it starts. */
export interface FoundShutdown extends ShutdownState {
  /** The machine has been started since: whatever was under way then is over. */
  readonly isOfEarlierBoot: boolean;
}

export const noShutdown: FoundShutdown = { startedAt: undefined, endedAt: undefined, isOfEarlierBoot: false };

/** Go's way to write that there is no time. */
const noTime = "0001-01-01T00:00:00Z";

/** Which start of the machine this is, and when it was, in milliseconds since 1970. */
export interface Boot {
  readonly id: string;
  readonly at: number;
}

/** `graceful_node_shutdown_state`, in the form that kubelets read and write; they pass over what we add, the boot. */
export class ShutdownStateFile {
  readonly #path: string;
  readonly #boot: Boot;

  constructor(path: string, boot: Boot) {
    this.#path = path;
    this.#boot = boot;
  }

  /** What nobody can read any more is as good as nothing. */
  async load(): Promise<FoundShutdown> {
    try {
      const { startTime, endTime, bootId } = JSON.parse(await readFile(this.#path, "utf8")) ?? {};
      const startedAt = timeOf(startTime);
      // A file of another kubelet names no boot; when the machine was started is known by the clock alone.
      const isOfEarlierBoot =
        typeof bootId === "string" ? bootId !== this.#boot.id : startedAt !== undefined && startedAt < this.#boot.at;
      return { startedAt, endedAt: timeOf(endTime), isOfEarlierBoot };
    } catch (error) {
      if (hasCode(error, "ENOENT") || error instanceof SyntaxError) return noShutdown;
      throw error;
    }
  }

  async save({ startedAt, endedAt }: ShutdownState): Promise<void> {
    const text = JSON.stringify({ startTime: textOf(startedAt), endTime: textOf(endedAt), bootId: this.#boot.id });
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
