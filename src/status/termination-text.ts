import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { messageOf } from "../base/index.ts";
import type { ObservedContainer } from "../model/index.ts";

const fileBytes = 4096;
const logBytes = 2048;
const logLines = 80;

/** What a container left as its last words: its termination file, or the end of its log if it asked for that. */
export function readTerminationText(container: ObservedContainer): string {
  const { terminationMessagePath: path, terminationMessagePolicy: policy } = container.annotations;
  if (path === "") return "";
  const mount = container.mounts.find(({ containerPath }) => containerPath === path);
  let text = "";
  if (mount !== undefined) {
    try {
      text = readEnd(mount.hostPath, fileBytes);
    } catch (error) {
      if (!isMissing(error)) return `Error on reading termination log ${path}: ${messageOf(error)}`;
    }
  }
  const wantsLog = policy === "FallbackToLogsOnError" && text === "";
  if (!wantsLog || container.exitCode === 0 || container.reason === "ContainerCannotRun") return text;
  try {
    return lastWords(readEnd(container.logPath, logLines * 16_384));
  } catch (error) {
    return isMissing(error) ? "" : `Error on reading termination message from logs: ${messageOf(error)}`;
  }
}

/** The messages of the last lines of a CRI log (`time stream tag text`), joined where the runtime split them. */
function lastWords(log: string): string {
  const lines = log.split("\n").filter((line) => line !== "");
  const text = lines
    .slice(-logLines)
    .map((line) => {
      const match = /^\S+ (?:stdout|stderr) (\S+) (.*)$/s.exec(line);
      if (match === null) return "";
      return match[1]?.split(":")[0] === "P" ? (match[2] ?? "") : `${match[2] ?? ""}\n`;
    })
    .join("");
  const bytes = Buffer.from(text);
  return bytes.subarray(Math.max(0, bytes.length - logBytes)).toString();
}

function readEnd(path: string, limit: number): string {
  const file = openSync(path, "r");
  try {
    const { size } = fstatSync(file);
    const length = Math.min(size, limit);
    const buffer = Buffer.alloc(length);
    const read = readSync(file, buffer, 0, length, size - length);
    return buffer.subarray(0, read).toString();
  } finally {
    closeSync(file);
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
