import { closeSync } from "node:fs";
import { loadedPart } from "../../ground/base/index.ts";
import { closeOnExec, doNotWait, familyUnix, nonBlocking, noSignal, typeStream } from "./socket-constants.ts";
import { SyscallError } from "./syscalls.ts";
import { unixAddress } from "./unix-address.ts";

/**
 * A connection to a unix socket on which descriptors may come along, which Node's own sockets drop. Nothing here waits:
 * whoever expects something looks again.
 */
export interface StreamSocket {
  /** How many of the bytes the kernel has taken; 0 while it takes none. */
  send(bytes: Buffer): number;
  /** Undefined: nothing is there yet. No bytes: the other side has closed. Whoever receives descriptors closes them. */
  receive(): ReceivedBytes | undefined;
  close(): void;
}

export interface ReceivedBytes {
  readonly bytes: Buffer;
  readonly descriptors: readonly number[];
}

interface MessageHeader {
  readonly name: null;
  readonly namelen: number;
  readonly iov: { readonly base: Buffer; readonly len: number };
  readonly iovlen: number;
  readonly control: Buffer;
  controllen: number | bigint;
  readonly flags: number;
}

interface SocketCalls {
  readonly socket: (family: number, type: number, protocol: number) => number;
  readonly connect: (fd: number, address: Buffer, length: number) => number;
  readonly send: (fd: number, data: Buffer, length: number, flags: number) => number;
  readonly recvmsg: (fd: number, message: MessageHeader, flags: number) => number;
  readonly errno: () => number;
}

let loaded: Promise<SocketCalls> | undefined;

/** A path that begins with `@` is an abstract name. */
export async function connectStream(path: string): Promise<StreamSocket> {
  loaded ??= bind();
  const calls = await loaded;
  const address = unixAddress(path);
  const fd = checked(calls, "socket", calls.socket(familyUnix, typeStream | nonBlocking | closeOnExec, 0));
  try {
    checked(calls, `connect to ${path}`, calls.connect(fd, address, address.length));
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return {
    send: (bytes) => sendBytes(calls, fd, bytes),
    receive: () => receiveBytes(calls, fd),
    close: () => closeSync(fd),
  };
}

function sendBytes(calls: SocketCalls, fd: number, bytes: Buffer): number {
  const sent = calls.send(fd, bytes, bytes.length, doNotWait | noSignal);
  if (sent >= 0) return sent;
  const error = new SyscallError("send", calls.errno());
  if (error.code === "EAGAIN") return 0;
  throw error;
}

function receiveBytes(calls: SocketCalls, fd: number): ReceivedBytes | undefined {
  const into = Buffer.alloc(longestRead);
  const control = Buffer.alloc(controlHeaderBytes + mostDescriptors * descriptorBytes);
  const iov = { base: into, len: into.length };
  const message = { name: null, namelen: 0, iov, iovlen: 1, control, controllen: control.length, flags: 0 };
  const length = calls.recvmsg(fd, message, doNotWait | closeReceivedOnExec);
  if (length < 0) {
    const error = new SyscallError("recvmsg", calls.errno());
    if (error.code === "EAGAIN") return undefined;
    throw error;
  }
  const used = control.subarray(0, Number(message.controllen));
  return { bytes: into.subarray(0, length), descriptors: descriptorsIn(used) };
}

/** One control message is all that fits: length, level, type, descriptors. The kernel closes what it can't hand over. */
function descriptorsIn(control: Buffer): readonly number[] {
  if (control.length < controlHeaderBytes) return [];
  const end = Math.min(Number(control.readBigUInt64LE(0)), control.length);
  if (control.readInt32LE(8) !== levelSocket || control.readInt32LE(12) !== descriptorRights) return [];
  const found: number[] = [];
  for (let at = controlHeaderBytes; at + descriptorBytes <= end; at += descriptorBytes) {
    found.push(control.readInt32LE(at));
  }
  return found;
}

function checked({ errno }: SocketCalls, call: string, result: number): number {
  if (result < 0) throw new SyscallError(call, errno());
  return result;
}

async function bind(): Promise<SocketCalls> {
  const { default: koffi } = await loadedPart(import("koffi"));
  const libc = koffi.load(null);
  const iovec = koffi.struct({ base: "void *", len: "size_t" });
  const header = koffi.struct({
    name: "void *",
    namelen: "uint32_t",
    iov: koffi.pointer(iovec),
    iovlen: "size_t",
    control: "void *",
    controllen: "size_t",
    flags: "int",
  });
  return {
    socket: libc.func("int socket(int family, int type, int protocol)"),
    connect: libc.func("int connect(int fd, const void *address, uint32_t length)"),
    send: libc.func("long send(int fd, const void *data, size_t length, int flags)"),
    recvmsg: libc.func("recvmsg", "long", ["int", koffi.inout(koffi.pointer(header)), "int"]),
    errno: () => koffi.errno(),
  };
}

/** What is said here is a few hundred bytes. */
const longestRead = 16 * 1024;
/** One is asked for at a time. */
const mostDescriptors = 4;
const descriptorBytes = 4;
const controlHeaderBytes = 16;

const closeReceivedOnExec = 0x4000_0000;
const levelSocket = 1;
const descriptorRights = 1;
