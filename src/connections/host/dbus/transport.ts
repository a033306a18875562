import { createConnection } from "node:net";

/**
 * The way bytes take to a bus. Node's sockets drop descriptors that come along; a transport that receives them
 * (recvmsg, for logind's inhibitors) says so, and hands them over with the bytes they came with.
 */
export interface BusTransport {
  readonly takesDescriptors: boolean;
  write(bytes: Buffer): void;
  /** Called for everything that arrives, and once at the end; nothing is called after `close`. */
  listen(listener: TransportListener): void;
  close(): void;
}

export interface TransportListener {
  readonly onBytes: (bytes: Buffer, descriptors: readonly number[]) => void;
  readonly onEnd: (error: Error) => void;
}

/** Whoever waits for `opened` bounds the wait. */
export type OpenTransport = (path: string) => BusTransport & { readonly opened: Promise<void> };

/** A unix socket by its path; one that begins with NUL is abstract. */
export const openSocket: OpenTransport = (path) => {
  const socket = createConnection({ path });
  // An idle connection to the bus is no reason for the process to go on.
  socket.unref();
  const opened = new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
    socket.once("close", () => reject(new Error(`connection to ${path} was closed`)));
  });
  return {
    takesDescriptors: false,
    opened,
    write: (bytes) => void socket.write(bytes),
    listen({ onBytes, onEnd }) {
      socket.on("data", (bytes) => onBytes(bytes, []));
      socket.on("error", onEnd);
      socket.on("close", () => onEnd(new Error(`connection to ${path} was closed`)));
    },
    close() {
      socket.removeAllListeners();
      socket.on("error", () => {});
      socket.destroy();
    },
  };
};
