import type { Dice } from "./dice.ts";
import { type DirectoryInode, FileError, type FileInode, type FileSystem, type Inode, type Mount } from "./inodes.ts";
import type { Life } from "./timeline.ts";

export interface OpenFile {
  readonly fd: number;
  readonly inode: Inode;
  readonly path: string;
  readonly flags: number;
  readonly life: Life | undefined;
  position: number;
}

export interface Listener {
  readonly inode: Inode;
  readonly life: Life | undefined;
  tell(notice: Notice): void;
}

export interface Notice {
  readonly type: "create" | "delete" | "movedFrom" | "movedTo" | "modify";
  readonly name: string;
  readonly cookie: number;
}

export interface Place {
  readonly parent: DirectoryInode;
  readonly name: string;
  readonly inode: Inode | undefined;
}

export const openFlags = {
  writeOnly: 1,
  readWrite: 2,
  create: 0o100,
  exclusive: 0o200,
  truncate: 0o1000,
  append: 0o2000,
  directory: 0o200000,
  noFollow: 0o400000,
  pathOnly: 0o10000000,
} as const;

const mostLinks = 40;

/**
 * The files of one machine, in memory. What was not synced is lost, torn or kept by chance when the power fails; names
 * come back in the order in which they were given, as a journal replays them.
 */
export class Disk {
  /** Nothing more can be stored. */
  isFull = false;
  /** Reading and writing fails. */
  isBroken = false;
  /** Which cgroups still have processes. */
  isCgroupBusy: (path: string) => boolean = () => false;
  readonly root: DirectoryInode;
  readonly #wallNow: () => number;
  readonly #dice: Dice;
  readonly #rootFileSystem: FileSystem = { type: "ext4", device: 1, source: "/dev/sda1" };
  readonly #open = new Map<number, OpenFile>();
  #mounts: Mount[] = [];
  readonly #mountOn = new Map<Inode, Mount[]>();
  #listeners: Listener[] = [];
  /** How to take back each change of names since the journal was last written. */
  #undo: (() => void)[] = [];
  readonly #dirty = new Set<FileInode>();
  #numbers = 1;
  #descriptors = 20;
  #devices = 2;
  #cookies = 1;

  constructor(wallNow: () => number, dice: Dice) {
    this.#wallNow = wallNow;
    this.#dice = dice;
    this.root = this.#newDirectory(this.#rootFileSystem, 0o755, undefined);
  }

  // Names

  place(path: string, syscall: string, follow: "last" | "not the last"): Place {
    return this.#walk(path, syscall, follow, 0);
  }

  find(path: string, syscall: string, follow: "last" | "not the last" = "last"): Inode {
    const { inode } = this.#walk(path, syscall, follow, 0);
    if (inode === undefined) throw new FileError("ENOENT", syscall, path);
    return inode;
  }

  exists(path: string): boolean {
    try {
      return this.#walk(path, "stat", "last", 0).inode !== undefined;
    } catch {
      return false;
    }
  }

  makeDirectory(path: string, mode = 0o777): DirectoryInode {
    const { parent, name, inode } = this.place(path, "mkdir", "not the last");
    if (inode !== undefined) throw new FileError("EEXIST", "mkdir", path);
    this.#requireSpace(parent, "mkdir", path);
    const made = this.#newDirectory(parent.fileSystem, mode, parent);
    this.#link(parent, name, made);
    if (parent.fileSystem.type === "cgroup2") this.#offerControls(made);
    return made;
  }

  /** The first that had to be made. */
  makeDirectories(path: string, mode = 0o777): string | undefined {
    let first: string | undefined;
    let made = "";
    for (const name of path.split("/")) {
      if (name === "") continue;
      made += `/${name}`;
      const { inode } = this.place(made, "mkdir", "last");
      if (inode?.type === "directory") continue;
      if (inode !== undefined) throw new FileError(made === path ? "EEXIST" : "ENOTDIR", "mkdir", path);
      this.makeDirectory(made, mode);
      first ??= made;
    }
    return first;
  }

  removeDirectory(path: string): void {
    const { parent, name, inode } = this.place(path, "rmdir", "not the last");
    if (inode === undefined) throw new FileError("ENOENT", "rmdir", path);
    if (inode.type !== "directory") throw new FileError("ENOTDIR", "rmdir", path);
    if (this.#isMountPoint(inode) || parent.entries.get(name) !== inode) throw new FileError("EBUSY", "rmdir", path);
    if (inode.fileSystem.type === "cgroup2") {
      const below = [...inode.entries.values()].some(({ type }) => type === "directory");
      if (below || this.isCgroupBusy(path)) throw new FileError("EBUSY", "rmdir", path);
    } else if (inode.entries.size > 0) throw new FileError("ENOTEMPTY", "rmdir", path);
    this.#unlink(parent, name, inode);
  }

  unlink(path: string): void {
    const { parent, name, inode } = this.place(path, "unlink", "not the last");
    if (inode === undefined) throw new FileError("ENOENT", "unlink", path);
    if (inode.type === "directory") throw new FileError("EISDIR", "unlink", path);
    if (parent.entries.get(name) !== inode) throw new FileError("EBUSY", "unlink", path);
    this.#unlink(parent, name, inode);
  }

  rename(from: string, to: string): void {
    const source = this.place(from, "rename", "not the last");
    const target = this.place(to, "rename", "not the last");
    const { inode } = source;
    if (inode === undefined) throw new FileError("ENOENT", "rename", from);
    if (inode === target.inode) return;
    if (inode.fileSystem !== target.parent.fileSystem) throw new FileError("EXDEV", "rename", from);
    const replaced = target.inode;
    if (replaced !== undefined) {
      if (replaced.type === "directory" && inode.type !== "directory") throw new FileError("EISDIR", "rename", to);
      if (replaced.type !== "directory" && inode.type === "directory") throw new FileError("ENOTDIR", "rename", to);
      if (this.#isMountPoint(replaced)) throw new FileError("EBUSY", "rename", to);
      if (replaced.type === "directory" && replaced.entries.size > 0) throw new FileError("ENOTEMPTY", "rename", to);
    }
    source.parent.entries.delete(source.name);
    target.parent.entries.set(target.name, inode);
    const oldParent = inode.type === "directory" ? inode.parent : undefined;
    if (inode.type === "directory") inode.parent = target.parent;
    this.#journal(source.parent, () => {
      if (replaced === undefined) target.parent.entries.delete(target.name);
      else target.parent.entries.set(target.name, replaced);
      source.parent.entries.set(source.name, inode);
      if (inode.type === "directory") inode.parent = oldParent;
    });
    const cookie = this.#cookies++;
    this.#touch(source.parent);
    this.#touch(target.parent);
    this.#tell(source.parent, { type: "movedFrom", name: source.name, cookie });
    this.#tell(target.parent, { type: "movedTo", name: target.name, cookie });
  }

  makeLink(target: string, path: string): void {
    const { parent, name, inode } = this.place(path, "symlink", "not the last");
    if (inode !== undefined) throw new FileError("EEXIST", "symlink", path);
    this.#requireSpace(parent, "symlink", path);
    this.#link(parent, name, { type: "link", target, ...this.#common(parent.fileSystem, 0o777) });
  }

  removeTree(path: string): void {
    const { inode } = this.place(path, "rm", "not the last");
    if (inode?.type === "directory") {
      for (const name of [...inode.entries.keys()]) this.removeTree(`${path}/${name}`);
      this.removeDirectory(path);
    } else if (inode !== undefined) this.unlink(path);
  }

  // Content

  open(path: string, flags: number, mode: number, life: Life | undefined): OpenFile {
    const isFollowed = (flags & openFlags.noFollow) === 0;
    const place = this.place(path, "open", isFollowed ? "last" : "not the last");
    let { inode } = place;
    if (inode !== undefined && (flags & openFlags.exclusive) !== 0) throw new FileError("EEXIST", "open", path);
    if (inode?.type === "link" && (flags & openFlags.pathOnly) === 0) throw new FileError("ELOOP", "open", path);
    if (inode === undefined) {
      if ((flags & openFlags.create) === 0) throw new FileError("ENOENT", "open", path);
      this.#requireSpace(place.parent, "open", path);
      inode = this.#newFile(place.parent.fileSystem, mode);
      this.#link(place.parent, place.name, inode);
    }
    const writes = (flags & (openFlags.writeOnly | openFlags.readWrite)) !== 0;
    if (inode.type === "directory" && writes) throw new FileError("EISDIR", "open", path);
    if (inode.type !== "directory" && (flags & openFlags.directory) !== 0) throw new FileError("ENOTDIR", "open", path);
    if (inode.type === "file" && (flags & openFlags.truncate) !== 0 && writes) this.setData(inode, Buffer.alloc(0));
    return this.hold(inode, path, flags, life);
  }

  hold(inode: Inode, path: string, flags: number, life: Life | undefined): OpenFile {
    const file: OpenFile = {
      ...{ fd: this.#descriptors++, inode, flags, life, position: 0 },
      // Others may be closed before it is asked where it lies.
      path: this.#canonical(path),
    };
    this.#open.set(file.fd, file);
    return file;
  }

  opened(fd: number, syscall: string): OpenFile {
    const file = this.#open.get(fd);
    if (file === undefined) throw new FileError("EBADF", syscall, `fd ${fd}`);
    return file;
  }

  close(fd: number): void {
    if (!this.#open.delete(fd)) throw new FileError("EBADF", "close", `fd ${fd}`);
  }

  read(inode: Inode, path: string): Buffer {
    if (inode.type !== "file") throw new FileError("EISDIR", "read", path);
    if (this.isBroken && inode.fileSystem.type === "ext4") throw new FileError("EIO", "read", path);
    return inode.made === undefined ? inode.data : Buffer.from(inode.made());
  }

  write(inode: Inode, data: Buffer, position: number, path: string): void {
    if (inode.type !== "file") throw new FileError("EISDIR", "write", path);
    if (inode.fileSystem.type === "cgroup2") {
      this.#control(inode, data.toString());
      return;
    }
    if (this.isFull && inode.fileSystem.type === "ext4" && this.#dice.chance(0.5)) {
      // The last free blocks take a part of it.
      this.#store(inode, data.subarray(0, this.#dice.whole(0, data.length)), position);
    }
    this.#requireSpace(inode, "write", path);
    this.#store(inode, data, position);
  }

  #store(inode: FileInode, data: Buffer, position: number): void {
    if (position === 0 && data.length >= inode.data.length) this.setData(inode, Buffer.from(data));
    else {
      const length = Math.max(inode.data.length, position + data.length);
      const grown = Buffer.alloc(length);
      inode.data.copy(grown);
      data.copy(grown, position);
      this.setData(inode, grown);
    }
  }

  setData(inode: FileInode, data: Buffer): void {
    if (inode.fileSystem.type === "ext4" && !this.#dirty.has(inode)) {
      inode.synced = inode.data;
      this.#dirty.add(inode);
    }
    inode.data = data;
    this.#touch(inode);
    this.#tell(inode, { type: "modify", name: "", cookie: 0 });
  }

  /** What is in the file will survive; for a directory, the names in it. Other names may get to the disk meanwhile. */
  sync(inode: Inode): void {
    if (this.isBroken) throw new FileError("EIO", "fsync", `inode ${inode.number}`);
    if (inode.type === "file") {
      inode.synced = undefined;
      this.#dirty.delete(inode);
    }
    if (inode.type === "directory" || this.#dice.chance(0.5)) this.#undo = [];
  }

  /** All names so far will survive: for people who make sure of what they save. */
  keepNames(): void {
    this.#undo = [];
  }

  /** Writes back what has waited, as kernels do every few seconds. */
  writeBack(): void {
    this.#undo = [];
    for (const inode of this.#dirty) inode.synced = undefined;
    this.#dirty.clear();
  }

  /** What a machine finds after the power failed: only what reached the disk; memory, mounts and processes are gone. */
  loseMemory(): void {
    const kept = this.#dice.whole(0, this.#undo.length);
    for (const undo of this.#undo.slice(kept).reverse()) undo();
    this.#undo = [];
    for (const inode of this.#dirty) {
      const before = inode.synced ?? Buffer.alloc(0);
      const torn = inode.data.subarray(0, this.#dice.whole(0, inode.data.length));
      inode.data = this.#dice.pick([before, inode.data, torn, Buffer.alloc(0), Buffer.alloc(inode.data.length)]);
      inode.synced = undefined;
    }
    this.#dirty.clear();
    this.#open.clear();
    this.#listeners = [];
    for (const mount of this.#mounts) {
      if (mount.root.fileSystem.type === "tmpfs" && mount.root.type === "directory" && mount.point === "/run") {
        mount.root.entries.clear();
      }
    }
    for (const mount of this.#mounts.slice(this.#fixedMounts)) this.#takeOff(mount);
    this.#mounts = this.#mounts.slice(0, this.#fixedMounts);
    const cgroups = this.#mounts.find(({ root }) => root.fileSystem.type === "cgroup2")?.root;
    if (cgroups?.type === "directory") {
      for (const [name, inode] of cgroups.entries) if (inode.type === "directory") cgroups.entries.delete(name);
    }
  }

  /** Descriptors and watches end with the process that has them. */
  end(life: Life): void {
    for (const [fd, file] of this.#open) if (file.life === life) this.#open.delete(fd);
    this.#listeners = this.#listeners.filter((listener) => listener.life !== life);
  }

  openedBy(life: Life): number {
    let count = 0;
    for (const file of this.#open.values()) if (file.life === life) count++;
    return count;
  }

  listen(listener: Listener): () => void {
    this.#listeners.push(listener);
    return () => {
      this.#listeners = this.#listeners.filter((each) => each !== listener);
    };
  }

  // Mounts

  #fixedMounts = 0;

  /** What is mounted from the start. */
  mountFixed(type: FileSystem["type"], point: string): DirectoryInode {
    this.makeDirectories(point);
    const fileSystem: FileSystem = { type, device: this.#devices++, source: type };
    const root = this.#newDirectory(fileSystem, 0o755, undefined);
    this.#mount(point, root);
    this.#fixedMounts = this.#mounts.length;
    return root;
  }

  mountMemory(point: string): void {
    const fileSystem: FileSystem = { type: "tmpfs", device: this.#devices++, source: "tmpfs" };
    this.#mount(point, this.#newDirectory(fileSystem, 0o777, undefined));
  }

  mountBind(source: string, point: string): void {
    const root = this.find(source, "mount");
    if (root.type === "link") throw new FileError("EINVAL", "mount", source);
    this.#mount(point, root);
  }

  unmount(point: string): void {
    const top = this.#mounts.findLast((mount) => mount.point === this.#canonical(point));
    if (top === undefined) throw new FileError("EINVAL", "umount", point);
    this.#takeOff(top);
    this.#mounts = this.#mounts.filter((mount) => mount !== top);
  }

  mountsBelow(directory: string): readonly string[] {
    return this.#mounts.slice(this.#fixedMounts).flatMap(({ point }) => (point.startsWith(directory) ? [point] : []));
  }

  /** Something is mounted on what has this name in the directory. */
  hasMount(directory: DirectoryInode, name: string): boolean {
    const inode = directory.entries.get(name);
    return inode !== undefined && this.#isMountPoint(inode);
  }

  mountTable(): string {
    const lines = this.#mounts.map(({ id, point, root }) => {
      const { type, device, source } = root.fileSystem;
      return `${id} 1 0:${device} / ${point} rw,relatime shared:${id} - ${type} ${source} rw`;
    });
    return `1 0 0:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n${lines.join("\n")}\n`;
  }

  addFile(path: string, content: string | (() => string)): void {
    this.makeDirectories(path.slice(0, path.lastIndexOf("/")) || "/");
    const { parent, name } = this.place(path, "open", "last");
    const made = typeof content === "string" ? undefined : content;
    const inode: FileInode = { ...this.#newFile(parent.fileSystem, 0o644), made };
    if (typeof content === "string") inode.data = Buffer.from(content);
    parent.entries.set(name, inode);
  }

  /** A name that somebody listens at: another one each time. */
  addSocket(path: string): void {
    this.makeDirectories(path.slice(0, path.lastIndexOf("/")));
    const { parent, name, inode } = this.place(path, "bind", "not the last");
    if (inode !== undefined) this.#unlink(parent, name, inode);
    this.#link(parent, name, { ...this.#newFile(parent.fileSystem, 0o755), isSocket: true });
  }

  isMounted(point: string): boolean {
    return this.#mounts.some((mount) => mount.point === point);
  }

  /** Where a directory is mounted, besides where it lies. */
  mountsOf(path: string): readonly string[] {
    if (!this.exists(path)) return [];
    const inode = this.find(path, "stat");
    return this.#mounts.flatMap(({ root, point }) => (root === inode ? [point] : []));
  }

  /** Everything below a directory, as paths, mounted things too. */
  tree(path: string): readonly string[] {
    const found: string[] = [];
    const visit = (directory: string): void => {
      const inode = this.place(directory, "readdir", "last").inode;
      if (inode?.type !== "directory") return;
      for (const [name, child] of inode.entries) {
        const below = `${directory}/${name}`;
        found.push(below);
        if (child.type === "directory") visit(below);
      }
    };
    visit(path);
    return found;
  }

  #mount(point: string, root: DirectoryInode | FileInode): void {
    const covered = this.find(point, "mount");
    if (covered.type === "link") throw new FileError("EINVAL", "mount", point);
    const mount: Mount = { id: 100 + this.#cookies++, point: this.#canonical(point), covered, root };
    const before = this.#mountOn.get(covered);
    if (before === undefined) this.#mountOn.set(covered, [mount]);
    else before.push(mount);
    this.#mounts.push(mount);
  }

  #takeOff(mount: Mount): void {
    const stack = this.#mountOn.get(mount.covered)?.filter((each) => each !== mount) ?? [];
    if (stack.length === 0) this.#mountOn.delete(mount.covered);
    else this.#mountOn.set(mount.covered, stack);
  }

  #isMountPoint(inode: Inode): boolean {
    return this.#mountOn.has(inode);
  }

  #canonical(path: string): string {
    const byDescriptor = /^\/proc\/self\/fd\/(\d+)(.*)$/.exec(path);
    if (byDescriptor === null) return path;
    return `${this.#canonical(this.opened(Number(byDescriptor[1]), "mount").path)}${byDescriptor[2]}`;
  }

  // Walking

  #walk(path: string, syscall: string, follow: "last" | "not the last", depth: number): Place {
    if (depth > mostLinks) throw new FileError("ELOOP", syscall, path);
    const parts = partsOf(path);
    let current: Inode = this.root;
    let first = 0;
    if (parts[0] === "proc" && parts[1] === "self" && parts[2] === "fd" && parts[3] !== undefined) {
      current = this.opened(Number(parts[3]), syscall).inode;
      first = 4;
    }
    let place: Place = { parent: this.root, name: "", inode: current };
    if (current.type === "directory" && current.parent !== undefined) place = { ...place, parent: current.parent };
    for (let index = first; index < parts.length; index++) {
      const name = parts[index] as string;
      if (current.type !== "directory") throw new FileError("ENOTDIR", syscall, path);
      const directory: DirectoryInode = current;
      const isLast = index === parts.length - 1;
      let child: Inode | undefined = name === ".." ? this.#above(directory) : directory.entries.get(name);
      if (child?.type === "link" && (!isLast || follow === "last")) {
        const target: string = child.target.startsWith("/")
          ? child.target
          : `${this.#pathOf(directory, parts.slice(first, index), parts.slice(0, first))}/${child.target}`;
        const followed = this.#walk([target, ...parts.slice(index + 1)].join("/"), syscall, follow, depth + 1);
        return followed;
      }
      if (child !== undefined && name !== "..") child = this.#mountOn.get(child)?.at(-1)?.root ?? child;
      place = { parent: directory, name, inode: child };
      if (child === undefined) {
        if (isLast) return place;
        throw new FileError("ENOENT", syscall, path);
      }
      current = child;
    }
    return place;
  }

  #pathOf(_directory: DirectoryInode, walked: readonly string[], start: readonly string[]): string {
    return `/${[...start, ...walked].join("/")}`;
  }

  #above(directory: DirectoryInode): DirectoryInode {
    const mount = this.#mounts.findLast(({ root }) => root === directory);
    const covered = mount?.covered ?? directory;
    return (covered.type === "directory" ? covered.parent : undefined) ?? this.root;
  }

  // Changing

  #link(parent: DirectoryInode, name: string, inode: Inode): void {
    parent.entries.set(name, inode);
    this.#journal(parent, () => parent.entries.delete(name));
    this.#touch(parent);
    this.#tell(parent, { type: "create", name, cookie: 0 });
  }

  #unlink(parent: DirectoryInode, name: string, inode: Inode): void {
    parent.entries.delete(name);
    this.#journal(parent, () => parent.entries.set(name, inode));
    if (inode.type === "file") this.#dirty.delete(inode);
    this.#touch(parent);
    this.#tell(parent, { type: "delete", name, cookie: 0 });
  }

  #journal({ fileSystem }: DirectoryInode, undo: () => void): void {
    if (fileSystem.type === "ext4") this.#undo.push(undo);
  }

  #touch(inode: Inode): void {
    const now = this.#wallNow();
    inode.modifiedAt = now;
    inode.changedAt = now;
  }

  #tell(inode: Inode, notice: Notice): void {
    if (this.#listeners.length === 0) return;
    for (const listener of this.#listeners) if (listener.inode === inode) listener.tell(notice);
  }

  #requireSpace({ fileSystem }: { readonly fileSystem: FileSystem }, syscall: string, path: string): void {
    if (fileSystem.type !== "ext4") return;
    if (this.isFull) throw new FileError("ENOSPC", syscall, path);
    if (this.isBroken) throw new FileError("EIO", syscall, path);
  }

  #common(fileSystem: FileSystem, mode: number) {
    const now = this.#wallNow();
    return { number: this.#numbers++, fileSystem, mode, uid: 0, gid: 0, modifiedAt: now, changedAt: now };
  }

  #newDirectory(fileSystem: FileSystem, mode: number, parent: DirectoryInode | undefined): DirectoryInode {
    return { type: "directory", entries: new Map(), parent, ...this.#common(fileSystem, mode) };
  }

  #newFile(fileSystem: FileSystem, mode: number): FileInode {
    return { type: "file", data: Buffer.alloc(0), synced: undefined, ...this.#common(fileSystem, mode) };
  }

  // Cgroups

  #offerControls(cgroup: DirectoryInode): void {
    for (const [name, text] of Object.entries(controlFiles)) {
      const inode = this.#newFile(cgroup.fileSystem, 0o644);
      inode.data = Buffer.from(`${text}\n`);
      cgroup.entries.set(name, inode);
    }
  }

  offerControlsAtTop(cgroup: DirectoryInode): void {
    this.#offerControls(cgroup);
  }

  #control(inode: FileInode, text: string): void {
    const words = text.trim().split(" ");
    if (words.every((word) => /^\+\w+$/.test(word))) {
      const enabled = new Set(inode.data.toString().trim().split(" "));
      for (const word of words) enabled.add(word.slice(1));
      enabled.delete("");
      inode.data = Buffer.from(`${[...enabled].join(" ")}\n`);
    } else inode.data = Buffer.from(`${text.trim()}\n`);
  }
}

const splitPaths = new Map<string, readonly string[]>();

/** The same paths are walked again and again. */
function partsOf(path: string): readonly string[] {
  let parts = splitPaths.get(path);
  if (parts === undefined) {
    parts = path.split("/").filter((part) => part !== "" && part !== ".");
    if (splitPaths.size > 10_000) splitPaths.clear();
    splitPaths.set(path, parts);
  }
  return parts;
}

/** What a new cgroup has, with the kernel's defaults. */
const controlFiles: Readonly<Record<string, string>> = {
  "cgroup.controllers": "cpuset cpu io memory hugetlb pids",
  "cgroup.subtree_control": "",
  "cgroup.procs": "",
  "cgroup.events": "populated 0",
  "cpu.weight": "100",
  "cpu.max": "max 100000",
  "cpu.stat": "usage_usec 0\nuser_usec 0\nsystem_usec 0",
  "cpuset.cpus": "",
  "cpuset.mems": "",
  "memory.max": "max",
  "memory.min": "0",
  "memory.low": "0",
  "memory.high": "max",
  "memory.swap.max": "max",
  "memory.oom.group": "0",
  "memory.current": "0",
  "memory.stat": "anon 0\nfile 0\ninactive_file 0",
  "pids.max": "max",
  "pids.current": "0",
  "hugetlb.2MB.max": "max",
};
