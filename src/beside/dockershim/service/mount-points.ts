import { mkdir } from "node:fs/promises";
import { EngineError } from "../engine/index.ts";

const missing = /bind source path does not exist: (.+)$/s;

/**
 * As other runtimes do: what is to be mounted and not there becomes a directory. Docker looks whether it is there; a
 * disk that hangs would keep a thread of ours, and we have few.
 */
export async function withMountPoints<Result>(
  sources: readonly string[],
  create: () => Promise<Result>,
): Promise<Result> {
  const made = new Set<string>();
  for (;;) {
    try {
      return await create();
    } catch (error) {
      const path = error instanceof EngineError ? missing.exec(error.message)?.[1] : undefined;
      if (path === undefined || made.has(path) || !sources.includes(path)) throw error;
      made.add(path);
      await mkdir(path, { recursive: true, mode: 0o755 });
    }
  }
}
