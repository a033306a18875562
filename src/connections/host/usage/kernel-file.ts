import { closeSync, openSync, readSync } from "node:fs";

let buffer = Buffer.allocUnsafe(16 * 1024);

/**
 * The text of a file that the kernel makes up when it is read, such as those of cgroups and /proc; undefined when it
 * is not there. Read at once, because no disk is involved: going through the thread pool costs five times as much.
 */
export function readKernelFile(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch {
    return undefined;
  }
  try {
    let length = 0;
    for (;;) {
      const read = readSync(file, buffer, length, buffer.length - length, null);
      if (read === 0) return buffer.toString("latin1", 0, length);
      length += read;
      if (length === buffer.length) buffer = Buffer.concat([buffer, Buffer.allocUnsafe(buffer.length)]);
    }
  } catch {
    // Some files exist for a controller that is off, or whose cgroup has just gone.
    return undefined;
  } finally {
    closeSync(file);
  }
}

/** A file that holds one number; undefined when it holds none, such as `max`. */
export function readKernelNumber(path: string): number | undefined {
  const text = readKernelFile(path);
  return text === undefined ? undefined : numberOf(text.trim());
}

/** Lines of `key value`. */
export function readKernelTable(path: string): ReadonlyMap<string, number> | undefined {
  const text = readKernelFile(path);
  if (text === undefined) return undefined;
  const table = new Map<string, number>();
  for (const line of text.split("\n")) {
    const space = line.indexOf(" ");
    const value = space < 0 ? undefined : numberOf(line.slice(space + 1));
    if (value !== undefined) table.set(line.slice(0, space), value);
  }
  return table;
}

/** One value of a table, without the making of a table. */
export function readKernelEntry(path: string, key: string): number | undefined {
  const lines = `\n${readKernelFile(path) ?? ""}`;
  const before = `\n${key} `;
  const found = lines.indexOf(before);
  if (found < 0) return undefined;
  const start = found + before.length;
  const end = lines.indexOf("\n", start);
  return numberOf(lines.slice(start, end < 0 ? undefined : end));
}

function numberOf(text: string): number | undefined {
  return /^-?\d+$/.test(text) ? Number(text) : undefined;
}
