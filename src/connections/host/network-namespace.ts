import { closeSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { Socket } from "node:net";
import { loadedPart, waitFor } from "../../ground/base/index.ts";
import { closeOnExec, nonBlocking, typeStream } from "./socket-constants.ts";
import { SyscallError } from "./syscalls.ts";

const newNetwork = 0x4000_0000;
const families = { ipv4: 2, ipv6: 10 } as const;
// By number: Node has no names for what is no failure.
const isConnected = 106;
const isOnItsWay: ReadonlySet<number> = new Set([114, 115]);

export type LoopbackFamily = keyof typeof families;

interface NetworkCalls {
  readonly setns: (fd: number, kind: number) => number;
  readonly socket: (family: number, type: number, protocol: number) => number;
  readonly connect: (fd: number, address: Buffer, length: number) => number;
  readonly errno: () => number;
}

let loaded: Promise<NetworkCalls> | undefined;

async function load(): Promise<NetworkCalls> {
  const { default: koffi } = await loadedPart(import("koffi"));
  const libc = koffi.load(null);
  return {
    setns: libc.func("int setns(int fd, int kind)"),
    socket: libc.func("int socket(int family, int type, int protocol)"),
    connect: libc.func("int connect(int fd, const void *address, uint32_t length)"),
    errno: () => koffi.errno(),
  };
}

/**
 * A connection to a port of the loopback address in another network namespace. A socket belongs for good to the
 * namespace it was made in, so this thread is there for that one call only and does nothing else meanwhile.
 */
export async function connectLoopbackIn(
  namespacePath: string,
  family: LoopbackFamily,
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  loaded ??= load();
  const calls = await loaded;
  await using own = await open("/proc/self/ns/net", "r");
  await using other = await open(namespacePath, "r");
  const fd = socketIn(calls, own, other, family);
  let socket: Socket;
  try {
    begin(calls, fd, loopbackAddress(family, port));
    socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return await established(socket, signal);
}

function socketIn(calls: NetworkCalls, own: FileHandle, other: FileHandle, family: LoopbackFamily): number {
  if (calls.setns(other.fd, newNetwork) !== 0) throw new SyscallError("setns", calls.errno());
  const fd = calls.socket(families[family], typeStream | nonBlocking | closeOnExec, 0);
  const errno = fd < 0 ? calls.errno() : 0;
  // A process that can't go back must not go on: all it does afterwards would be in the wrong place.
  if (calls.setns(own.fd, newNetwork) !== 0) process.abort();
  if (fd < 0) throw new SyscallError("socket", errno);
  return fd;
}

/** On the loopback the other side has answered by the time of the second call, in most cases. */
function begin(calls: NetworkCalls, fd: number, address: Buffer): void {
  for (let attempt = 0; attempt < 2; attempt++) {
    if (calls.connect(fd, address, address.length) === 0) return;
    const errno = calls.errno();
    if (errno === isConnected) return;
    if (!isOnItsWay.has(errno)) throw new SyscallError("connect", errno);
  }
}

/** One that is still on its way says so by an error, or by being there when asked for its peer. */
async function established(socket: Socket, signal: AbortSignal): Promise<Socket> {
  try {
    await waitFor(signal, (done, fail) => {
      socket.once("error", fail);
      // Empty, but sent only when there is somebody to send it to.
      socket.write("", () => done());
      return () => socket.off("error", fail);
    });
    return socket;
  } catch (error) {
    socket.on("error", () => {});
    socket.destroy();
    throw error;
  }
}

function loopbackAddress(family: LoopbackFamily, port: number): Buffer {
  const address = Buffer.alloc(family === "ipv4" ? 16 : 28);
  address.writeUInt16LE(families[family], 0);
  address.writeUInt16BE(port, 2);
  if (family === "ipv4") address.set([127, 0, 0, 1], 4);
  else address[23] = 1;
  return address;
}
