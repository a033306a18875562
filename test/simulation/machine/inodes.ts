/** What a path can lead to. */
export type Inode = FileInode | DirectoryInode | LinkInode;

interface Common {
  readonly number: number;
  readonly fileSystem: FileSystem;
  mode: number;
  uid: number;
  gid: number;
  modifiedAt: number;
  changedAt: number;
}

export interface FileInode extends Common {
  readonly type: "file";
  data: Buffer;
  /** What the disk has while the rest is in memory alone. */
  synced: Buffer | undefined;
  /** A file whose content is made when it is read, as in /proc. */
  readonly made?: (() => string) | undefined;
  /** Somebody listens, or did. */
  readonly isSocket?: boolean;
}

export interface DirectoryInode extends Common {
  readonly type: "directory";
  readonly entries: Map<string, Inode>;
  parent: DirectoryInode | undefined;
}

export interface LinkInode extends Common {
  readonly type: "link";
  readonly target: string;
}

export interface FileSystem {
  readonly type: "ext4" | "tmpfs" | "proc" | "sysfs" | "cgroup2";
  readonly device: number;
  readonly source: string;
}

export interface Mount {
  readonly id: number;
  readonly point: string;
  readonly covered: DirectoryInode | FileInode;
  readonly root: DirectoryInode | FileInode;
}

export class FileError extends Error {
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;
  readonly path: string;

  constructor(code: keyof typeof errors, syscall: string, path: string) {
    super(`${code}: ${errors[code][1]}, ${syscall} '${path}'`);
    this.code = code;
    this.errno = -errors[code][0];
    this.syscall = syscall;
    this.path = path;
  }
}

const errors = {
  ENOENT: [2, "no such file or directory"],
  EIO: [5, "i/o error"],
  EBADF: [9, "bad file descriptor"],
  EAGAIN: [11, "resource temporarily unavailable"],
  EACCES: [13, "permission denied"],
  EBUSY: [16, "resource busy or locked"],
  EEXIST: [17, "file already exists"],
  EXDEV: [18, "cross-device link not permitted"],
  ENOTDIR: [20, "not a directory"],
  EISDIR: [21, "illegal operation on a directory"],
  EINVAL: [22, "invalid argument"],
  ENOSPC: [28, "no space left on device"],
  ELOOP: [40, "too many symbolic links encountered"],
  ENOTEMPTY: [39, "directory not empty"],
} as const;
