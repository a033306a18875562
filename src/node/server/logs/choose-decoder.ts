import { CriDecoder } from "./cri-decoder.ts";
import type { LineFilter, LogDecoder } from "./decoder.ts";
import { DockerDecoder, parseDockerLine } from "./docker-decoder.ts";
import { parseMoment } from "./line-time.ts";

/** A file that is no log of a container. */
export class LogFormatError extends Error {
  override readonly name = "LogFormatError";
}

const shownBytes = 200;
/** As long as a line of Docker's may be; what tells no format by then, a file of zeros after a loss of power say, has none. */
const longestStart = 1024 * 1024;

/** The decoder for a log that starts like this; undefined: its first line is not there yet. */
export function chooseDecoder(start: Buffer, filter: LineFilter): LogDecoder | undefined {
  const end = start.indexOf(0x0a);
  const line = start.toString("utf8", 0, Math.min(end < 0 ? start.length : end, longestStart));
  if (/^\S+ (stdout|stderr) [FP](:\S*)? /.test(line) && parseMoment(line.slice(0, line.indexOf(" ")))) {
    return new CriDecoder(filter);
  }
  if (parseDockerLine(line) !== undefined) return new DockerDecoder(filter);
  if (end < 0 && start.length < longestStart) return undefined;
  throw new LogFormatError(
    `failed to get parse function: unsupported log format: ${JSON.stringify(line.slice(0, shownBytes))}`,
  );
}
