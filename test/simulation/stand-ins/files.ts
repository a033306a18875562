// What both forms of Node's file functions share.
import type { BigIntStats, Stats } from "node:fs";
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
  return new SimulatedStats(inode);
}

export function bigStatsOf(inode: Inode): BigIntStats {
  return new SimulatedBigStats(inode);
}

/** What it is, as Node tells it. */
class Kind {
  readonly #type: keyof typeof typeBits;

  constructor(inode: Inode) {
    this.#type = typeOf(inode);
  }

  isFile(): boolean {
    return this.#type === "file";
  }

  isDirectory(): boolean {
    return this.#type === "directory";
  }

  isSymbolicLink(): boolean {
    return this.#type === "link";
  }

  isSocket(): boolean {
    return this.#type === "socket";
  }

  isBlockDevice(): boolean {
    return false;
  }

  isCharacterDevice(): boolean {
    return false;
  }

  isFIFO(): boolean {
    return false;
  }
}

class SimulatedStats extends Kind implements Stats {
  readonly nlink = 1;
  readonly rdev = 0;
  readonly blksize = 4096;
  readonly dev: number;
  readonly ino: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly blocks: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;

  constructor(inode: Inode) {
    super(inode);
    this.dev = inode.fileSystem.device;
    this.ino = inode.number;
    this.mode = modeBitsOf(inode);
    this.uid = inode.uid;
    this.gid = inode.gid;
    this.size = sizeOf(inode);
    this.blocks = Math.ceil(this.size / 512);
    this.mtimeMs = inode.modifiedAt;
    this.ctimeMs = inode.changedAt;
  }

  get atimeMs(): number {
    return this.mtimeMs;
  }

  get birthtimeMs(): number {
    return this.mtimeMs;
  }

  get atime(): Date {
    return new Date(this.mtimeMs);
  }

  get mtime(): Date {
    return new Date(this.mtimeMs);
  }

  get ctime(): Date {
    return new Date(this.ctimeMs);
  }

  get birthtime(): Date {
    return new Date(this.mtimeMs);
  }
}

class SimulatedBigStats extends Kind implements BigIntStats {
  readonly nlink = 1n;
  readonly rdev = 0n;
  readonly blksize = 4096n;
  readonly dev: bigint;
  readonly ino: bigint;
  readonly mode: bigint;
  readonly uid: bigint;
  readonly gid: bigint;
  readonly size: bigint;
  readonly #modifiedAt: number;
  readonly #changedAt: number;

  constructor(inode: Inode) {
    super(inode);
    this.dev = BigInt(inode.fileSystem.device);
    this.ino = BigInt(inode.number);
    this.mode = BigInt(modeBitsOf(inode));
    this.uid = BigInt(inode.uid);
    this.gid = BigInt(inode.gid);
    this.size = BigInt(sizeOf(inode));
    this.#modifiedAt = inode.modifiedAt;
    this.#changedAt = inode.changedAt;
  }

  get blocks(): bigint {
    return (this.size + 511n) / 512n;
  }

  get mtimeMs(): bigint {
    return BigInt(Math.floor(this.#modifiedAt));
  }

  get ctimeMs(): bigint {
    return BigInt(Math.floor(this.#changedAt));
  }

  get atimeMs(): bigint {
    return this.mtimeMs;
  }

  get birthtimeMs(): bigint {
    return this.mtimeMs;
  }

  get mtimeNs(): bigint {
    return BigInt(Math.round(this.#modifiedAt * 1e6));
  }

  get ctimeNs(): bigint {
    return BigInt(Math.round(this.#changedAt * 1e6));
  }

  get atimeNs(): bigint {
    return this.mtimeNs;
  }

  get birthtimeNs(): bigint {
    return this.mtimeNs;
  }

  get mtime(): Date {
    return new Date(this.#modifiedAt);
  }

  get ctime(): Date {
    return new Date(this.#changedAt);
  }

  get atime(): Date {
    return this.mtime;
  }

  get birthtime(): Date {
    return this.mtime;
  }
}

function typeOf(inode: Inode): keyof typeof typeBits {
  return inode.type === "file" && inode.isSocket === true ? "socket" : inode.type;
}

function modeBitsOf(inode: Inode): number {
  return typeBits[typeOf(inode)] | (inode.mode & 0o7777);
}

function sizeOf(inode: Inode): number {
  if (inode.type === "directory") return 4096;
  return inode.type === "file" ? inode.data.length : inode.target.length;
}

export class Entry<Name> extends Kind {
  readonly name: Name;
  readonly path: string;
  readonly parentPath: string;

  constructor(name: Name, inode: Inode, parent: string) {
    super(inode);
    this.name = name;
    this.path = parent;
    this.parentPath = parent;
  }
}

export function entryOf<Name extends string | Buffer>(name: Name, inode: Inode, parent: string): Entry<Name> {
  return new Entry(name, inode, parent);
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
