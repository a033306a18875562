// In place of node:fs: what the agent uses of it at once or with callbacks, and watching.
import { EventEmitter } from "node:events";
import type { Stats } from "node:fs";
import { openFlags } from "../machine/disk.ts";
import { FileError } from "../machine/inodes.ts";
import { machine } from "../machine/machine.ts";
import {
  bigStatsOf,
  bytes,
  encodingOf,
  entryOf,
  flagsOf,
  hasOption,
  modeOf,
  type PathLike,
  readFileNow,
  statsOf,
  text,
  writeFileNow,
} from "./files.ts";
import { noticesIn } from "./inotify.ts";

export { constants } from "node:fs";
export * as promises from "./node-fs-promises.ts";

export function open(
  path: PathLike,
  flags: string | number,
  ...rest: [...unknown[], (error: unknown, fd?: number) => void]
): void {
  const done = rest.at(-1) as (error: unknown, fd?: number) => void;
  machine()
    .soon(() => openSync(path, flags))
    .then(
      (fd) => done(null, fd),
      (error: unknown) => done(error),
    );
}

export function openSync(path: PathLike, flags?: string | number, mode = 0o666): number {
  const { disk, life } = machine();
  return disk.open(text(path), flagsOf(flags), mode, life).fd;
}

export function closeSync(fd: number): void {
  machine().disk.close(fd);
}

export function fstatSync(fd: number, options?: unknown): Stats | ReturnType<typeof bigStatsOf> {
  const { inode } = machine().disk.opened(fd, "fstat");
  return hasOption(options, "bigint") ? bigStatsOf(inode) : statsOf(inode);
}

export function statSync(path: PathLike, options?: unknown): Stats | ReturnType<typeof bigStatsOf> {
  const inode = machine().disk.find(text(path), "stat");
  return hasOption(options, "bigint") ? bigStatsOf(inode) : statsOf(inode);
}

export function existsSync(path: PathLike): boolean {
  return machine().disk.exists(text(path));
}

export function readFileSync(path: PathLike, options?: unknown): Buffer | string {
  const data = readFileNow(path);
  return encodingOf(options) === undefined ? data : data.toString("utf8");
}

export function writeFileSync(path: PathLike, data: string | Uint8Array, options?: unknown): void {
  writeFileNow(path, data, "w", modeOf(options, 0o666));
}

export function appendFileSync(path: PathLike, data: string | Uint8Array): void {
  writeFileNow(path, data, "a", 0o666);
}

export function writeSync(fd: number, data: string | Uint8Array): number {
  const { disk } = machine();
  const file = disk.opened(fd, "write");
  const content = bytes(data);
  const isAppended = (file.flags & openFlags.append) !== 0;
  const at = isAppended && file.inode.type === "file" ? file.inode.data.length : file.position;
  disk.write(file.inode, content, at, file.path);
  file.position = at + content.length;
  return content.length;
}

export function readSync(fd: number, buffer: Uint8Array): number {
  const notices = noticesIn(fd);
  if (notices !== undefined) {
    if (notices.length === 0) throw new FileError("EAGAIN", "read", `fd ${fd}`);
    const read = notices.subarray(0, buffer.length);
    read.copy(buffer);
    return read.length;
  }
  const { disk } = machine();
  const file = disk.opened(fd, "read");
  const data = disk.read(file.inode, file.path);
  const length = Math.max(0, Math.min(buffer.length, data.length - file.position));
  data.copy(buffer, 0, file.position, file.position + length);
  file.position += length;
  return length;
}

export function readdirSync(path: PathLike, options?: unknown): unknown[] {
  const inode = machine().disk.find(text(path), "scandir");
  if (inode.type !== "directory") throw new FileError("ENOTDIR", "scandir", text(path));
  const names = [...inode.entries].sort(([one], [other]) => (one < other ? -1 : 1));
  return names.map(([name, child]) => (hasOption(options, "withFileTypes") ? entryOf(name, child, text(path)) : name));
}

export function opendirSync(path: PathLike): { readSync(): unknown; closeSync(): void } {
  const entries = readdirSync(path, { withFileTypes: true }).values();
  return { readSync: () => entries.next().value ?? null, closeSync: () => {} };
}

export function readlinkSync(path: PathLike): string {
  const inode = machine().disk.find(text(path), "readlink", "not the last");
  if (inode.type !== "link") throw new FileError("EINVAL", "readlink", text(path));
  return inode.target;
}

export function write(_fd: number, ...rest: unknown[]): void {
  machine().escapes.push(`fs.write with ${rest.length} arguments`);
}

export class FSWatcher extends EventEmitter {
  #stop: () => void = () => {};

  begin(path: string, tell: ((event: string, name: string | null) => void) | undefined): void {
    const { disk, life, timeline } = machine();
    const inode = disk.find(path, "watch");
    this.#stop = disk.listen({
      inode,
      life,
      tell: ({ type, name }) => {
        const event = type === "modify" ? "change" : "rename";
        timeline.after(machine().ids.between(0.05, 3), life, () => {
          tell?.(event, name);
          this.emit("change", event, name);
        });
      },
    });
  }

  close(): void {
    this.#stop();
    this.emit("close");
  }

  unref(): this {
    return this;
  }
}

export function watch(
  path: PathLike,
  options?: unknown,
  listener?: (event: string, name: string | null) => void,
): FSWatcher {
  const watcher = new FSWatcher();
  const tell = typeof options === "function" ? (options as typeof listener) : listener;
  watcher.begin(text(path), tell);
  return watcher;
}
