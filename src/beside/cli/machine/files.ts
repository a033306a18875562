import { readdir, readFile } from "node:fs/promises";
import { isMissing } from "../../../ground/base/index.ts";

/** The names in a directory; none when it does not exist. */
export async function listDir(path: string): Promise<readonly string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

export async function readIfPresent(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
