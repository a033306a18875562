import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { hasCode, messageOf } from "../../ground/base/index.ts";
import type { ObservedContainer, PodUid } from "../../ground/model/index.ts";

const fileBytes = 4096;
const logBytes = 2048;
const logLines = 80;
/** The last words and the heads of all their lines, behind a line as long as runtimes write them (16 KiB). */
const logTailBytes = 40 * 1024;

/** What a container left as its last words: its termination file, or the end of its log if it asked for that. */
export async function readTerminationText(uid: PodUid, container: ObservedContainer): Promise<string> {
  const { terminationMessagePath: path, terminationMessagePolicy: policy } = container.annotations;
  if (path === "") return "";
  const file = ownFile(uid, container, path);
  let text = "";
  if (file !== undefined) {
    try {
      text = (await readEnd(file, fileBytes)).content.toString();
    } catch (error) {
      if (!hasCode(error, "ENOENT")) return `Error on reading termination log ${path}: ${messageOf(error)}`;
    }
  }
  const wantsLog = policy === "FallbackToLogsOnError" && text === "";
  if (!wantsLog || container.exitCode === 0 || container.reason === "ContainerCannotRun") return text;
  try {
    return lastWords(await readEnd(container.logPath, logTailBytes));
  } catch (error) {
    return hasCode(error, "ENOENT") ? "" : `Error on reading termination message from logs: ${messageOf(error)}`;
  }
}

/**
 * The file that the agent made for this and mounted over whatever else the pod has at that path. Only that one: the
 * pod's own volumes may hold anything there, on file systems that never answer.
 */
function ownFile(uid: PodUid, { name, mounts }: ObservedContainer, path: string): string | undefined {
  const directory = `/pods/${uid}/containers/${name}/`;
  return mounts.findLast(({ containerPath, hostPath }) => containerPath === path && hostPath.includes(directory))
    ?.hostPath;
}

interface FileEnd {
  readonly content: Buffer;
  /** Whether the file has more before it. */
  readonly isCut: boolean;
}

/** The messages of the last lines of a CRI log (`time stream tag text`), joined where the runtime split them. */
function lastWords({ content, isCut }: FileEnd): string {
  const lines = content.toString().split("\n");
  const text = (isCut ? lines.slice(1) : lines)
    .filter((line) => line !== "")
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

/** Reads nothing but regular files: a pipe, a device or a link put in the place of one must neither block nor lead away. */
async function readEnd(path: string, limit: number): Promise<FileEnd> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  const file = await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const stats = await file.stat();
    if (!stats.isFile()) throw new Error("it is not a regular file");
    const length = Math.min(stats.size, limit);
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await file.read(buffer, 0, length, stats.size - length);
    return { content: buffer.subarray(0, bytesRead), isCut: length < stats.size };
  } finally {
    await file.close();
  }
}
