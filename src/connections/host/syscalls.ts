import { setMaxListeners } from "node:events";
import { getSystemErrorMap } from "node:util";
import { Limiter, loadedPart, never } from "../../ground/base/index.ts";
import { closeOnExec, doNotWait, familyUnix, nonBlocking, noSignal, typeDatagram } from "./socket-constants.ts";
import { unixAddress } from "./unix-address.ts";

/**
 * The system calls that Node has no function for. Loaded on first use: the native library costs memory that commands
 * such as `nodelet version` need not pay. What returns no promise is short and never waits for a disk or a server, except
 * where it says so.
 */
export interface Syscalls {
  /** Takes the lock or says at once that somebody else holds it; it lasts until the descriptor is closed. */
  tryFlock(fd: number): "held" | "taken";
  getOpenFileLimit(): OpenFileLimit;
  setOpenFileLimit(limit: OpenFileLimit): void;
  mount(source: string, target: string, fsType: string, flags: number, data?: string): void;
  /** Off the event loop: what is in memory is freed, and what is not on the disk yet goes there. */
  unmount(target: string, flags: number): Promise<void>;
  setExtendedAttribute(path: string, name: string, value: string): void;
  /** Sends one datagram to a unix socket; a leading `@` names an abstract one. */
  sendDatagram(socketPath: string, payload: string): void;
  /** A descriptor that can be read without waiting for what happens to the file. */
  watchInode(path: string, mask: number): number;
  /**
   * A descriptor for the place that a relative path names below an open directory. Any link on the way, and any way
   * out of the directory, is refused by the kernel (ELOOP, EXDEV). ENOSYS before Linux 5.6.
   */
  openBeneath(directory: number, path: string): number;
  /**
   * A descriptor for what has this name in an open directory, off the event loop. What is mounted there is refused
   * with EXDEV and not touched, so this does not wait for a file server; links are not followed. ENOSYS before Linux 5.6.
   */
  openSameMount(directory: number, name: Uint8Array, kind: "directory" | "anything"): Promise<number>;
  /** A descriptor through which the kernel tells that something has happened. */
  openEventCounter(): number;
  /** A descriptor that is ready whenever the given one has news: something to read, or something urgent. */
  openReadiness(of: number, news: "readable" | "urgent"): number;
  /** Takes notice of the news, so that the next are news again. */
  takeReadiness(readiness: number): void;
  openPipe(): { readonly reader: number; readonly writer: number };
  /** From now on `descriptor` means what `by` means. */
  replaceDescriptor(descriptor: number, by: number): void;
  /** Ends the process at once, whatever its threads are at. Nobody is told, and nothing is written any more. */
  exitNow(code: number): void;
}

export interface OpenFileLimit {
  readonly soft: bigint;
  readonly hard: bigint;
}

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
  /** As Node spells it: EPERM, EBUSY… */
  readonly code: string;

  constructor(call: string, errno: number) {
    const [code, description] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, "unknown error"];
    super(`${call}: ${description} (${code})`);
    this.call = call;
    this.code = code;
  }
}

// They run on Node's few threads, one after the other; the library refuses to queue more than 256.
const offLoopCalls = new Limiter(32);

/** Calls on threads that have not ended; Node does not list them among its own, and tests on virtual time wait for them. */
export function callsUnderWay(): number {
  return offLoopCalls.held;
}
// Freeing gigabytes takes seconds; the other threads stay for everybody else.
const unmounts = new Limiter(2);
// Each that waits listens; Node would take more than ten for a leak.
setMaxListeners(0, never);

interface AsyncCall {
  readonly async: (...args: unknown[]) => void;
}

let loaded: Promise<Syscalls> | undefined;

export function loadSyscalls(): Promise<Syscalls> {
  loaded ??= bind();
  return loaded;
}

async function bind(): Promise<Syscalls> {
  const { default: koffi } = await loadedPart(import("koffi"));
  const libc = koffi.load(null);
  const flock: (fd: number, operation: number) => number = libc.func("int flock(int fd, int operation)");
  const getrlimit: (resource: number, limit: Buffer) => number = libc.func("int getrlimit(int resource, void *limit)");
  const setrlimit: (resource: number, limit: Buffer) => number = libc.func("int setrlimit(int resource, void *limit)");
  const mount: (source: string, target: string, type: string, flags: number, data: string | null) => number = libc.func(
    "int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)",
  );
  const umount2 = libc.func("int umount2(const char *target, int flags)");
  const setxattr: (path: string, name: string, value: Buffer, size: number, flags: number) => number = libc.func(
    "int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)",
  );
  const socket: (family: number, type: number, protocol: number) => number = libc.func(
    "int socket(int family, int type, int protocol)",
  );
  const sendto: (fd: number, data: Buffer, length: number, flags: number, to: Buffer, toLength: number) => number =
    libc.func("long sendto(int fd, const void *data, size_t length, int flags, const void *to, uint32_t to_length)");
  const close: (fd: number) => number = libc.func("int close(int fd)");
  const inotifyInit: (flags: number) => number = libc.func("int inotify_init1(int flags)");
  const inotifyAddWatch: (fd: number, path: string, mask: number) => number = libc.func(
    "int inotify_add_watch(int fd, const char *path, uint32_t mask)",
  );
  const openat2: (number: number, directory: number, path: string, how: Buffer, size: number) => number = libc.func(
    "long syscall(long number, int directory, const char *path, void *how, size_t size)",
  );

  const eventfd: (count: number, flags: number) => number = libc.func("int eventfd(unsigned int count, int flags)");
  const epollCreate: (flags: number) => number = libc.func("int epoll_create1(int flags)");
  const epollControl: (epoll: number, operation: number, fd: number, event: Buffer) => number = libc.func(
    "int epoll_ctl(int epoll, int operation, int fd, void *event)",
  );
  const epollWait: (epoll: number, events: Buffer, most: number, timeoutMs: number) => number = libc.func(
    "int epoll_wait(int epoll, void *events, int most, int timeout_ms)",
  );
  const pipe2: (ends: Buffer, flags: number) => number = libc.func("int pipe2(void *ends, int flags)");
  const dup3: (from: number, to: number, flags: number) => number = libc.func("int dup3(int from, int to, int flags)");
  const exit: (code: number) => void = libc.func("void _exit(int code)");
  const openInDirectory = libc.func(
    "long syscall(long number, int directory, const void *path, void *how, size_t size)",
  );

  function check(call: string, result: number): number {
    if (result < 0) throw new SyscallError(call, koffi.errno());
    return result;
  }

  /** On a thread of Node's pool, for what may have to wait for a disk. */
  function offLoop(call: string, run: AsyncCall, args: readonly unknown[]): Promise<number> {
    const inThread = (): Promise<number> =>
      new Promise((resolve, reject) => {
        run.async(...args, (failure: unknown, result: number) => {
          // Only here does the library still know the call's own error number.
          if (failure) reject(failure);
          else if (result < 0) reject(new SyscallError(call, koffi.errno()));
          else resolve(result);
        });
      });
    return offLoopCalls.run(inThread, never);
  }

  return {
    tryFlock(fd) {
      if (flock(fd, lockExclusive | lockNonBlocking) === 0) return "held";
      const error = new SyscallError("flock", koffi.errno());
      if (error.code === "EAGAIN") return "taken";
      throw error;
    },
    getOpenFileLimit() {
      const limit = Buffer.alloc(16);
      check("getrlimit", getrlimit(limitOfOpenFiles, limit));
      return { soft: limit.readBigUInt64LE(0), hard: limit.readBigUInt64LE(8) };
    },
    setOpenFileLimit({ soft, hard }) {
      const limit = Buffer.alloc(16);
      limit.writeBigUInt64LE(soft, 0);
      limit.writeBigUInt64LE(hard, 8);
      check("setrlimit", setrlimit(limitOfOpenFiles, limit));
    },
    mount: (source, target, fsType, flags, data) =>
      void check(`mount ${source} on ${target}`, mount(source, target, fsType, flags, data ?? null)),
    unmount: async (target, flags) => {
      const text = `unmount ${target}`;
      await unmounts.run(() => offLoop(text, umount2, [target, flags]), never);
    },
    setExtendedAttribute(path, name, value) {
      const bytes = Buffer.from(value);
      check(`setxattr ${name} of ${path}`, setxattr(path, name, bytes, bytes.length, 0));
    },
    sendDatagram(socketPath, payload) {
      const address = unixAddress(socketPath);
      const data = Buffer.from(payload);
      const fd = check("socket", socket(familyUnix, typeDatagram | closeOnExec, 0));
      try {
        check(`send to ${socketPath}`, sendto(fd, data, data.length, doNotWait | noSignal, address, address.length));
      } finally {
        close(fd);
      }
    },
    watchInode(path, mask) {
      const fd = check("inotify_init1", inotifyInit(nonBlocking | closeOnExec));
      try {
        check(`inotify_add_watch ${path}`, inotifyAddWatch(fd, path, mask));
      } catch (error) {
        close(fd);
        throw error;
      }
      return fd;
    },
    openBeneath(directory, path) {
      const how = Buffer.alloc(24);
      // Without O_NOFOLLOW: with it, the kernel would hand out a last link itself instead of refusing it.
      how.writeBigUInt64LE(BigInt(pathOnly | closeOnExec), 0);
      how.writeBigUInt64LE(BigInt(resolveBeneath | resolveNoSymlinks | resolveNoMagicLinks), 16);
      return check(`open ${path}`, openat2(numberOfOpenat2, directory, path, how, how.length));
    },
    openSameMount(directory, name, kind) {
      const how = Buffer.alloc(24);
      const flags = pathOnly | closeOnExec | noFollow | (kind === "directory" ? directoryOnly : 0);
      how.writeBigUInt64LE(BigInt(flags), 0);
      how.writeBigUInt64LE(BigInt(resolveNoCrossing | resolveNoMagicLinks), 16);
      const path = Buffer.concat([name, endOfText]);
      return offLoop("open in a directory", openInDirectory, [numberOfOpenat2, directory, path, how, how.length]);
    },
    openEventCounter: () => check("eventfd", eventfd(0, nonBlocking | closeOnExec)),
    openReadiness(of, news) {
      const epoll = check("epoll_create1", epollCreate(closeOnExec));
      try {
        const event = Buffer.alloc(epollEventBytes);
        event.writeUInt32LE((news === "urgent" ? epollUrgent : epollReadable) + epollEdge, 0);
        check("epoll_ctl", epollControl(epoll, epollAdd, of, event));
        return epoll;
      } catch (error) {
        close(epoll);
        throw error;
      }
    },
    takeReadiness: (readiness) => void check("epoll_wait", epollWait(readiness, Buffer.alloc(epollEventBytes), 1, 0)),
    openPipe() {
      const ends = Buffer.alloc(8);
      check("pipe2", pipe2(ends, nonBlocking | closeOnExec));
      return { reader: ends.readInt32LE(0), writer: ends.readInt32LE(4) };
    },
    exitNow: (code) => exit(code),
    replaceDescriptor: (descriptor, by) => void check("dup3", dup3(by, descriptor, closeOnExec)),
  };
}

const lockExclusive = 2;
const lockNonBlocking = 4;
const limitOfOpenFiles = 7;

const endOfText = Buffer.of(0);
const pathOnly = 0o10000000;
const directoryOnly = 0o200000;
const noFollow = 0o400000;
const numberOfOpenat2 = 437;
const resolveNoCrossing = 0x01;
const resolveNoMagicLinks = 0x02;
const resolveNoSymlinks = 0x04;
const resolveBeneath = 0x08;

// struct epoll_event is packed on x86-64 and has four bytes more elsewhere; only its first field is used.
const epollEventBytes = 16;
const epollAdd = 1;
const epollReadable = 0x1;
const epollUrgent = 0x2;
const epollEdge = 2 ** 31;
