import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, isMissing } from "../../ground/base/index.ts";
import { decodeManifest, describeProblem, isError } from "../../ground/model/index.ts";
import { unreadable } from "./unreadable.ts";

/** How many pods the directory describes. Fails with all problems at once, so that none shows only as a missing pod. */
export async function countPods(directory: string): Promise<number> {
  const problems: string[] = [];
  let pods = 0;
  for (const entry of await entriesOf(directory)) {
    // The agent passes over hidden files and directories as well.
    if (entry.name.startsWith(".") || entry.isDirectory()) continue;
    const path = join(directory, entry.name);
    const manifest = await decodeManifest(await readFile(path, "utf8"), ["Pod"]);
    pods++;
    for (const problem of manifest.problems)
      if (isError(problem)) problems.push(`${path}: ${describeProblem(problem)}`);
  }
  if (problems.length > 0) throw new Error(problems.join("\n"));
  if (pods === 0) throw new Error(`there is no manifest in ${directory}; wanted files with one Pod each`);
  return pods;
}

async function entriesOf(directory: string) {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch (error) {
    if (!isMissing(error) && !hasCode(error, "ENOTDIR")) throw unreadable(error, directory);
    throw new Error(`there is no directory ${directory}; wanted one with files of one Pod each`);
  }
}
