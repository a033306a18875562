// In place of node:fs/promises: the same functions over the files of the simulated machine, each in a moment of its own.
import type { BigIntStats, Dirent, Stats } from "node:fs";
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

export { constants } from "node:fs";

export class FileHandle implements AsyncDisposable {
  readonly fd: number;

  constructor(fd: number) {
    this.fd = fd;
  }

  stat(options?: unknown): Promise<Stats | BigIntStats> {
    return machine().soon(() => {
      const { inode } = machine().disk.opened(this.fd, "fstat");
      return hasOption(options, "bigint") ? bigStatsOf(inode) : statsOf(inode);
    });
  }

  read(
    into: Uint8Array | { buffer: Uint8Array; offset?: number; length?: number; position?: number | null },
    offset?: number,
    length?: number,
    position?: number | null,
  ): Promise<{ bytesRead: number; buffer: Uint8Array }> {
    const asked = into instanceof Uint8Array ? { buffer: into, offset, length, position } : into;
    return machine().soon(() => {
      const { disk } = machine();
      const file = disk.opened(this.fd, "read");
      const data = disk.read(file.inode, file.path);
      const from = asked.position ?? file.position;
      const start = asked.offset ?? 0;
      const most = asked.length ?? asked.buffer.length - start;
      const bytesRead = Math.max(0, Math.min(most, data.length - from));
      data.copy(asked.buffer, start, from, from + bytesRead);
      if (asked.position === undefined || asked.position === null) file.position += bytesRead;
      return { bytesRead, buffer: asked.buffer };
    });
  }

  async readFile(options?: unknown): Promise<Buffer | string> {
    return machine().soon(() => {
      const { disk } = machine();
      const file = disk.opened(this.fd, "read");
      const data = Buffer.from(disk.read(file.inode, file.path).subarray(file.position));
      file.position += data.length;
      return encodingOf(options) === undefined ? data : data.toString("utf8");
    });
  }

  write(data: string | Uint8Array): Promise<{ bytesWritten: number }> {
    return machine().soon(() => {
      const { disk } = machine();
      const file = disk.opened(this.fd, "write");
      const content = bytes(data);
      const isAppended = (file.flags & openFlags.append) !== 0 && file.inode.type === "file";
      const at = isAppended && file.inode.type === "file" ? file.inode.data.length : file.position;
      disk.write(file.inode, content, at, file.path);
      file.position = at + content.length;
      return { bytesWritten: content.length };
    });
  }

  async writeFile(data: string | Uint8Array): Promise<void> {
    const content = bytes(data);
    // A long text is written in parts, between which anything can happen.
    const half = Math.ceil(content.length / 2);
    if (half > 0) await this.write(content.subarray(0, half));
    if (half < content.length) await this.write(content.subarray(half));
  }

  sync(): Promise<void> {
    return machine().soon(() => machine().disk.sync(machine().disk.opened(this.fd, "fsync").inode));
  }

  datasync(): Promise<void> {
    return this.sync();
  }

  chmod(mode: number): Promise<void> {
    return machine().soon(() => {
      machine().disk.opened(this.fd, "fchmod").inode.mode = mode;
    });
  }

  chown(uid: number, gid: number): Promise<void> {
    return machine().soon(() => {
      Object.assign(machine().disk.opened(this.fd, "fchown").inode, { uid, gid });
    });
  }

  truncate(length = 0): Promise<void> {
    return machine().soon(() => {
      const { inode } = machine().disk.opened(this.fd, "ftruncate");
      if (inode.type === "file") machine().disk.setData(inode, Buffer.from(inode.data.subarray(0, length)));
    });
  }

  utimes(): Promise<void> {
    return machine().soon(() => {});
  }

  close(): Promise<void> {
    return machine().soon(() => machine().disk.close(this.fd));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

export function open(path: PathLike, flags?: string | number, mode = 0o666): Promise<FileHandle> {
  return machine().soon(() => {
    const { disk, life } = machine();
    return new FileHandle(disk.open(text(path), flagsOf(flags), mode, life).fd);
  });
}

export function readFile(path: PathLike, options?: unknown): Promise<Buffer | string> {
  return machine().soon(() => {
    const data = readFileNow(path);
    return encodingOf(options) === undefined ? data : data.toString("utf8");
  });
}

/** First the file is there, then its first half, then all of it. */
export async function writeFile(path: PathLike, data: string | Uint8Array, options?: unknown): Promise<void> {
  const flag = typeof options === "object" && options !== null && "flag" in options ? String(options.flag) : "w";
  const file = await open(path, flag, modeOf(options, 0o666));
  try {
    await file.writeFile(data);
  } finally {
    await file.close();
  }
}

export async function appendFile(path: PathLike, data: string | Uint8Array): Promise<void> {
  await machine().soon(() => writeFileNow(path, data, "a", 0o666));
}

export function access(path: PathLike): Promise<void> {
  return machine().soon(() => void machine().disk.find(text(path), "access"));
}

export function stat(path: PathLike, options?: unknown): Promise<Stats | BigIntStats> {
  return machine().soon(() => {
    const inode = machine().disk.find(text(path), "stat");
    return hasOption(options, "bigint") ? bigStatsOf(inode) : statsOf(inode);
  });
}

export function lstat(path: PathLike, options?: unknown): Promise<Stats | BigIntStats> {
  return machine().soon(() => {
    const inode = machine().disk.find(text(path), "lstat", "not the last");
    return hasOption(options, "bigint") ? bigStatsOf(inode) : statsOf(inode);
  });
}

export function statfs(path: PathLike, options?: unknown): Promise<object> {
  return machine().soon(() => {
    machine().disk.find(text(path), "statfs");
    const figures = { type: 0xef53, bsize: 4096, blocks: 25_000_000, bfree: 12_000_000, bavail: 11_000_000 };
    const all = { ...figures, files: 6_000_000, ffree: 5_000_000 };
    if (!hasOption(options, "bigint")) return all;
    return Object.fromEntries(Object.entries(all).map(([name, value]) => [name, BigInt(value)]));
  });
}

export function mkdir(path: PathLike, options?: unknown): Promise<string | undefined> {
  return machine().soon(() => {
    const { disk } = machine();
    const mode = modeOf(options, 0o777);
    if (hasOption(options, "recursive")) return disk.makeDirectories(text(path), mode);
    disk.makeDirectory(text(path), mode);
    return undefined;
  });
}

export function mkdtemp(prefix: PathLike): Promise<string> {
  return machine().soon(() => {
    const path = `${text(prefix)}${machine().ids.hex(6)}`;
    machine().disk.makeDirectory(path, 0o700);
    return path;
  });
}

export function rmdir(path: PathLike): Promise<void> {
  return machine().soon(() => machine().disk.removeDirectory(text(path)));
}

export function unlink(path: PathLike): Promise<void> {
  return machine().soon(() => machine().disk.unlink(text(path)));
}

export function rename(from: PathLike, to: PathLike): Promise<void> {
  return machine().soon(() => machine().disk.rename(text(from), text(to)));
}

export function symlink(target: PathLike, path: PathLike): Promise<void> {
  return machine().soon(() => machine().disk.makeLink(text(target), text(path)));
}

export function readlink(path: PathLike, options?: unknown): Promise<string | Buffer> {
  return machine().soon(() => {
    const inode = machine().disk.find(text(path), "readlink", "not the last");
    if (inode.type !== "link") throw new FileError("EINVAL", "readlink", text(path));
    return encodingOf(options) === "buffer" ? Buffer.from(inode.target) : inode.target;
  });
}

/** Links of the simulated machine lead to places in their own directory or to absolute paths without links. */
export function realpath(path: PathLike): Promise<string> {
  return machine().soon(() => {
    const { disk } = machine();
    const inode = disk.place(text(path), "realpath", "not the last").inode;
    if (inode === undefined) throw new FileError("ENOENT", "realpath", text(path));
    if (inode.type !== "link") return text(path);
    const directory = text(path).slice(0, text(path).lastIndexOf("/"));
    return inode.target.startsWith("/") ? inode.target : `${directory}/${inode.target}`;
  });
}

export function rm(path: PathLike, options?: unknown): Promise<void> {
  return machine().soon(() => {
    const { disk } = machine();
    if (!disk.exists(text(path)) && disk.place(text(path), "rm", "not the last").inode === undefined) {
      if (hasOption(options, "force")) return;
      throw new FileError("ENOENT", "rm", text(path));
    }
    if (hasOption(options, "recursive")) disk.removeTree(text(path));
    else disk.unlink(text(path));
  });
}

export function readdir(
  path: PathLike,
  options?: unknown,
): Promise<readonly (string | Buffer | Pick<Dirent, "path">)[]> {
  return machine().soon(() => {
    const inode = machine().disk.find(text(path), "scandir");
    if (inode.type !== "directory") throw new FileError("ENOTDIR", "scandir", text(path));
    const asBuffers = encodingOf(options) === "buffer";
    const names = [...inode.entries.keys()].sort();
    if (!hasOption(options, "withFileTypes")) return asBuffers ? names.map((name) => Buffer.from(name)) : names;
    return names.map((name) => {
      const child = inode.entries.get(name);
      if (child === undefined) throw new FileError("ENOENT", "scandir", text(path));
      return entryOf(asBuffers ? Buffer.from(name) : name, child, text(path));
    });
  });
}

export function opendir(path: PathLike): Promise<never> {
  return machine().soon(() => {
    throw new Error(`directories as large as ${text(path)} are not simulated`);
  });
}

export function chmod(path: PathLike, mode: number): Promise<void> {
  return machine().soon(() => {
    machine().disk.find(text(path), "chmod").mode = mode;
  });
}

export function chown(path: PathLike, uid: number, gid: number): Promise<void> {
  return machine().soon(() => {
    Object.assign(machine().disk.find(text(path), "chown"), { uid, gid });
  });
}

export function lchown(path: PathLike, uid: number, gid: number): Promise<void> {
  return machine().soon(() => {
    Object.assign(machine().disk.find(text(path), "lchown", "not the last"), { uid, gid });
  });
}

export function utimes(path: PathLike): Promise<void> {
  return machine().soon(() => void machine().disk.find(text(path), "utimes"));
}

/** Moves the content of a directory one level up or elsewhere; nobody in the agent copies files. */
export function copyFile(from: PathLike, to: PathLike): Promise<void> {
  return machine().soon(() => writeFileNow(to, readFileNow(from), "w", 0o666));
}

export default { open, readFile, writeFile };
