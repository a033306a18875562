// What both forms of Node's file functions share.
import type { BigIntStats, Dirent, Stats } from "node:fs";
import { openFlags } from "../machine/disk.ts";
import type { Inode } from "../machine/inodes.ts";
import { machine } from "../machine/machine.ts";

export type PathLike = string | Buffer | URL;

export function text(path: PathLike): string {
  if (typeof path === "string") return path;
  return path instanceof URL ? path.pathname : path.toString("utf8");
}

export function flagsOf(flags: string | number | undefined): number {
  if (typeof flags === "number") return flags;
  switch (flags ?? "r") {
    case "r":
    case "rs":
      return 0;
    case "r+":
      return openFlags.readWrite;
    case "w":
      return openFlags.writeOnly | openFlags.create | openFlags.truncate;
    case "wx":
      return openFlags.writeOnly | openFlags.create | openFlags.truncate | openFlags.exclusive;
    case "w+":
      return openFlags.readWrite | openFlags.create | openFlags.truncate;
    case "a":
      return openFlags.writeOnly | openFlags.create | openFlags.append;
    default:
      throw new Error(`files can't be opened with "${flags}" here`);
  }
}

export function bytes(data: string | Uint8Array): Buffer {
  return typeof data === "string" ? Buffer.from(data) : Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

const typeBits = { file: 0o100000, directory: 0o040000, link: 0o120000, socket: 0o140000 } as const;

export function statsOf(inode: Inode): Stats {
  const size = inode.type === "file" ? inode.data.length : inode.type === "directory" ? 4096 : inode.target.length;
  const time = inode.modifiedAt;
  const changed = inode.changedAt;
  return {
    dev: inode.fileSystem.device,
    ino: inode.number,
    mode: typeBits[inode.type === "file" && inode.isSocket === true ? "socket" : inode.type] | (inode.mode & 0o7777),
    nlink: 1,
    uid: inode.uid,
    gid: inode.gid,
    rdev: 0,
    size,
    blksize: 4096,
    blocks: Math.ceil(size / 512),
    atimeMs: time,
    mtimeMs: time,
    ctimeMs: changed,
    birthtimeMs: time,
    atime: new Date(time),
    mtime: new Date(time),
    ctime: new Date(changed),
    birthtime: new Date(time),
    ...kindOf(inode),
  };
}

export function bigStatsOf(inode: Inode): BigIntStats {
  const { dev, ino, mode, nlink, uid, gid, rdev, size, blksize, blocks, atime, mtime, ctime, birthtime } =
    statsOf(inode);
  const modified = BigInt(Math.floor(inode.modifiedAt));
  const changed = BigInt(Math.floor(inode.changedAt));
  const precise = (ms: number): bigint => BigInt(Math.round(ms * 1e6));
  return {
    ...{ dev: BigInt(dev), ino: BigInt(ino), mode: BigInt(mode), nlink: BigInt(nlink) },
    ...{ uid: BigInt(uid), gid: BigInt(gid), rdev: BigInt(rdev), size: BigInt(size) },
    ...{ blksize: BigInt(blksize), blocks: BigInt(blocks), atime, mtime, ctime, birthtime },
    ...{ atimeMs: modified, mtimeMs: modified, ctimeMs: changed, birthtimeMs: modified },
    ...{ atimeNs: precise(inode.modifiedAt), mtimeNs: precise(inode.modifiedAt) },
    ...{ ctimeNs: precise(inode.changedAt), birthtimeNs: precise(inode.modifiedAt) },
    ...kindOf(inode),
  };
}

function kindOf(inode: Inode) {
  const { type } = inode;
  const isSocket = type === "file" && inode.isSocket === true;
  return {
    isFile: () => type === "file" && !isSocket,
    isDirectory: () => type === "directory",
    isSymbolicLink: () => type === "link",
    isBlockDevice: () => false,
    isCharacterDevice: () => false,
    isFIFO: () => false,
    isSocket: () => isSocket,
  };
}

export function entryOf(name: string, inode: Inode, parent: string): Dirent {
  return { name, path: parent, parentPath: parent, ...kindOf(inode) };
}

export function readFileNow(path: PathLike): Buffer {
  const { disk } = machine();
  return Buffer.from(disk.read(disk.find(text(path), "open"), text(path)));
}

export function writeFileNow(path: PathLike, data: string | Uint8Array, flags: string | number, mode: number): void {
  const { disk, life } = machine();
  const file = disk.open(text(path), flagsOf(flags), mode, life);
  try {
    const isAppended = (file.flags & openFlags.append) !== 0;
    const start = isAppended && file.inode.type === "file" ? file.inode.data.length : 0;
    disk.write(file.inode, bytes(data), start, text(path));
  } finally {
    disk.close(file.fd);
  }
}

export function modeOf(options: unknown, otherwise: number): number {
  if (typeof options === "number") return options;
  if (typeof options !== "object" || options === null || !("mode" in options)) return otherwise;
  return typeof options.mode === "number" ? options.mode : otherwise;
}

export function encodingOf(options: unknown): string | undefined {
  if (typeof options === "string") return options;
  if (typeof options !== "object" || options === null || !("encoding" in options)) return undefined;
  return typeof options.encoding === "string" ? options.encoding : undefined;
}

export function hasOption(options: unknown, name: string): boolean {
  return typeof options === "object" && options !== null && Reflect.get(options, name) === true;
}
