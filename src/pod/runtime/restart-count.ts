import { readdir } from "node:fs/promises";
import type { ObservedContainer } from "../../ground/model/index.ts";

/** Attempts are 32 bits wide at the runtime; a larger number is some other file. */
const largestCount = 2 ** 31 - 1;

/**
 * How often a container has been restarted once the next instance runs. Records and logs of init containers go with
 * their sandbox, and others may be lost; users, who were told of `toldRestarts`, never see fewer.
 */
export async function nextRestartCount(
  newest: ObservedContainer | undefined,
  logDirectory: string,
  toldRestarts: number,
): Promise<number> {
  return Math.max(await countedRestarts(newest, logDirectory), toldRestarts);
}

/**
 * A runtime that lost its records must not make the new instance write into an old one's log, so then the logs left
 * behind tell.
 */
async function countedRestarts(newest: ObservedContainer | undefined, logDirectory: string): Promise<number> {
  if (newest !== undefined) return newest.annotations.restartCount + 1;
  let entries: { readonly name: string; isDirectory(): boolean }[];
  try {
    entries = await readdir(logDirectory, { withFileTypes: true });
  } catch {
    return 0;
  }
  const counts = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => /^(\d+)\.log/.exec(entry.name)?.[1])
    .filter((digits) => digits !== undefined)
    .map(Number)
    .filter((count) => count < largestCount);
  return counts.length === 0 ? 0 : Math.max(...counts) + 1;
}
