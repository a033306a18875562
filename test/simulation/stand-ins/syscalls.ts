// In place of connections/host/syscalls.ts.
import { getSystemErrorMap } from "node:util";
import type { Syscalls } from "../../../src/connections/host/syscalls.ts";
import { FileError } from "../machine/inodes.ts";
import { machine } from "../machine/machine.ts";
import { watchInode } from "./inotify.ts";

export const mountFlags = {
  readOnly: 0x1,
  noSuid: 0x2,
  noDev: 0x4,
  noExec: 0x8,
  noAtime: 0x400,
  noDirAtime: 0x800,
  relAtime: 0x20_0000,
  remount: 0x20,
  bind: 0x1000,
  recursive: 0x4000,
  private: 0x4_0000,
  slave: 0x8_0000,
  shared: 0x10_0000,
} as const;

export const unmountFlags = { force: 1, detach: 2, noFollow: 8 } as const;

export const inodeEvents = { open: 0x20, deleteSelf: 0x400 } as const;

export class SyscallError extends Error {
  override readonly name = "SyscallError";
  readonly call: string;
  readonly code: string;

  constructor(call: string, errno: number) {
    const [code, description] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown error"];
    super(`${call}: ${description} (${code})`);
    this.call = call;
    this.code = code;
  }
}

export function callsUnderWay(): number {
  return 0;
}

/** Errors of the simulated files, as those of system calls. */
function asCall<Result>(call: string, perform: () => Result): Result {
  try {
    return perform();
  } catch (error) {
    throw error instanceof FileError ? new SyscallError(call, -error.errno) : error;
  }
}

const exdev = 18;
const enotdir = 20;

const enosys = 38;

function notHere(call: string): never {
  throw new SyscallError(call, enosys);
}

const calls: Syscalls = {
  tryFlock: () => "held",
  getOpenFileLimit: () => ({ soft: 1_000_000n, hard: 1_000_000n }),
  setOpenFileLimit() {},
  mount(source, target, fsType, flags) {
    asCall(`mount ${source} on ${target}`, () => {
      const { disk } = machine();
      if ((flags & (mountFlags.remount | mountFlags.private | mountFlags.slave | mountFlags.shared)) !== 0) return;
      if ((flags & mountFlags.bind) !== 0) disk.mountBind(source, target);
      else if (fsType === "tmpfs") disk.mountMemory(target);
      else throw new FileError("EINVAL", "mount", target);
    });
  },
  unmount: (target) => machine().soon(() => asCall(`unmount ${target}`, () => machine().disk.unmount(target))),
  setExtendedAttribute() {},
  sendDatagram() {},
  watchInode: (path) => asCall(`inotify_add_watch ${path}`, () => watchInode(path)),
  openBeneath(directory, path) {
    return asCall(`open ${path}`, () => {
      const { disk, life } = machine();
      const place = `/proc/self/fd/${directory}/${path}`;
      const inode = disk.find(place, "open", "not the last");
      return disk.hold(inode, place, 0, life).fd;
    });
  },
  openEventCounter: () => notHere("eventfd"),
  openReadiness: () => notHere("epoll_create1"),
  takeReadiness: () => notHere("epoll_wait"),
  openPipe: () => notHere("pipe2"),
  replaceDescriptor: () => notHere("dup3"),
  exitNow: () => notHere("_exit"),
  openSameMount: (directory, name, kind) =>
    machine().soon(() =>
      asCall("open in a directory", () => {
        const { disk, life } = machine();
        const parent = disk.opened(directory, "open").inode;
        const entry = Buffer.from(name).toString("utf8");
        if (parent.type !== "directory") throw new SyscallError("open in a directory", enotdir);
        if (disk.hasMount(parent, entry)) throw new SyscallError("open in a directory", exdev);
        const place = `/proc/self/fd/${directory}/${entry}`;
        const inode = disk.find(place, "open", "not the last");
        if (kind === "directory" && inode.type !== "directory") throw new SyscallError("open in a directory", enotdir);
        return disk.hold(inode, place, 0, life).fd;
      }),
    ),
};

export async function loadSyscalls(): Promise<Syscalls> {
  return calls;
}
