import { readFile } from "node:fs/promises";
import { ifThere, saveFile } from "../../ground/base/index.ts";
import type { LastingFiles } from "./following-file.ts";

export const diskFiles: LastingFiles = {
  read: (path) => ifThere(readFile(path, "utf8")),
  save: (path, text) => saveFile(path, text, 0o600),
};
