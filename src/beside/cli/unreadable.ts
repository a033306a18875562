import { hasCode, isMissing } from "../../ground/base/index.ts";

/** Why a file can't be read, as a sentence: the system's own words are for those who write programs. */
export function unreadable(error: unknown, path: string): unknown {
  if (isMissing(error)) return new Error(`there is no file ${path}`);
  if (hasCode(error, "EISDIR")) return new Error(`${path} is a directory, not a file`);
  if (hasCode(error, "EACCES", "EPERM")) return new Error(`${path} is not for you to read; try again with sudo`);
  return error;
}
