import { resolve } from "node:path";
import { codeOf, messageOf } from "../base/index.ts";
import type { ConfigIo, DirEntry } from "./agent-config.ts";

/** Everything that loading a configuration has read of files: enough to load it again when they are others by then. */
export interface ConfigSnapshot {
  readonly files: Readonly<Record<string, string>>;
  readonly directories: Readonly<Record<string, readonly DirEntry[]>>;
  readonly kinds: Readonly<Record<string, DirEntry["kind"]>>;
  /** Why what was asked for could not be read; not there when all could. */
  readonly failures?: Readonly<Record<string, ReadFailure>>;
}

interface ReadFailure {
  readonly message: string;
  readonly code?: string;
}

/** Files that somebody may write while we read them are not read without end. */
const mostBytes = 4 * 2 ** 20;
const mostEntries = 10_000;

/** Reads like `io`, and remembers what was read. */
export function recordingIo(io: ConfigIo): { readonly io: ConfigIo; readonly snapshot: () => ConfigSnapshot } {
  const files: Record<string, string> = {};
  const directories: Record<string, readonly DirEntry[]> = {};
  const kinds: Record<string, DirEntry["kind"]> = {};
  const failures: Record<string, ReadFailure> = {};
  let bytes = 0;
  let entries = 0;
  const noting = async <Found>(path: string, read: () => Promise<Found>): Promise<Found> => {
    try {
      return await read();
    } catch (error) {
      const code = codeOf(error);
      failures[resolve(io.cwd, path)] = { message: messageOf(error), ...(code !== undefined && { code }) };
      throw error;
    }
  };
  return {
    snapshot: () => ({
      files: sorted(files),
      directories: sorted(directories),
      kinds: sorted(kinds),
      // Left out where there are none: ids of versions are made from this, and known on many disks.
      ...(Object.keys(failures).length > 0 && { failures: sorted(failures) }),
    }),
    io: {
      ...io,
      readFile: (path) =>
        noting(path, async () => {
          const content = await io.readFile(path);
          bytes += content.length;
          if (bytes > mostBytes) throw new Error(`the files of the configuration are longer than ${mostBytes} bytes`);
          files[resolve(io.cwd, path)] = Buffer.from(content).toString("base64");
          return content;
        }),
      listDir: (path) =>
        noting(path, async () => {
          const found = await io.listDir(path);
          entries += found.length;
          if (entries > mostEntries) throw new Error(`there are more than ${mostEntries} files`);
          // What the kernel lists in another order is no other configuration.
          directories[resolve(io.cwd, path)] = [...found].sort((a, b) => (a.name < b.name ? -1 : 1));
          return found;
        }),
      kindOf: (path) =>
        noting(path, async () => {
          const kind = await io.kindOf(path);
          kinds[resolve(io.cwd, path)] = kind;
          return kind;
        }),
    },
  };
}

/** Reads from the snapshot only: what could not be read then can't be now, for the same reason. */
export function replayingIo(snapshot: ConfigSnapshot, io: ConfigIo): ConfigIo {
  const find = <Value>(table: Readonly<Record<string, Value>>, path: string): Value => {
    const value = Object.hasOwn(table, resolve(io.cwd, path)) ? table[resolve(io.cwd, path)] : undefined;
    if (value !== undefined) return value;
    const { failures = {} } = snapshot;
    const failure = Object.hasOwn(failures, resolve(io.cwd, path)) ? failures[resolve(io.cwd, path)] : undefined;
    if (failure !== undefined) throw Object.assign(new Error(failure.message), failure);
    throw Object.assign(new Error(`ENOENT: "${path}" was not there when the configuration was read`), {
      code: "ENOENT",
    });
  };
  return {
    ...io,
    readFile: async (path) => Buffer.from(find(snapshot.files, path), "base64"),
    listDir: async (path) => find(snapshot.directories, path),
    kindOf: async (path) => find(snapshot.kinds, path),
  };
}

function sorted<Value>(record: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}
