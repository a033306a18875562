import type { Socket } from "node:net";
import { onAbort } from "../../../ground/base/index.ts";

const replies: Readonly<Record<number, string>> = {
  1: "general failure",
  2: "not allowed",
  3: "network unreachable",
  4: "host unreachable",
  5: "connection refused",
  6: "time to live expired",
  7: "command not supported",
  8: "address type not supported",
};

/** The opening of SOCKS5 (RFC 1928, RFC 1929); names are left to the proxy to look up. */
export async function negotiateSocks(
  socket: Socket,
  { username, password }: { readonly username: string; readonly password: string },
  host: string,
  port: number,
  signal: AbortSignal,
): Promise<Socket> {
  const reader = new ExactReader(socket, signal);
  try {
    const methods = username === "" ? [0] : [0, 2];
    socket.write(Buffer.from([5, methods.length, ...methods]));
    const [version, method] = await reader.take(2);
    if (version !== 5) throw new Error("the proxy does not speak SOCKS5");
    if (method === 2) {
      const [user, secret] = [Buffer.from(username), Buffer.from(password)];
      socket.write(Buffer.concat([Buffer.from([1, user.length]), user, Buffer.from([secret.length]), secret]));
      const [, refused] = await reader.take(2);
      if (refused !== 0) throw new Error("the proxy did not accept the user name and password");
    } else if (method !== 0) throw new Error("the proxy wants another way to log in than user name and password");
    const name = Buffer.from(host);
    const portBytes = Buffer.from([port >> 8, port & 255]);
    socket.write(Buffer.concat([Buffer.from([5, 1, 0, 3, name.length]), name, portBytes]));
    const [, reply = -1, , addressType] = await reader.take(4);
    if (reply !== 0) throw new Error(`the proxy refused to connect us: ${replies[reply] ?? `reply ${reply}`}`);
    const addressLength = addressType === 1 ? 4 : addressType === 4 ? 16 : ((await reader.take(1))[0] ?? 0);
    await reader.take(addressLength + 2);
    return socket;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    reader.release();
  }
}

/** Takes a known number of bytes at a time, and leaves the rest in the socket. */
class ExactReader {
  readonly #socket: Socket;
  #wake: (() => void) | undefined;
  #broken: Error | undefined;
  readonly #onReadable = (): void => this.#wake?.();
  readonly #onEnd = (error?: unknown): void => {
    this.#broken ??= error instanceof Error ? error : new Error("the proxy closed the connection");
    this.#wake?.();
  };
  readonly #aborting: Disposable;

  constructor(socket: Socket, signal: AbortSignal) {
    this.#socket = socket;
    socket.on("readable", this.#onReadable).on("error", this.#onEnd).on("end", this.#onEnd).on("close", this.#onEnd);
    this.#aborting = onAbort(signal, () => this.#onEnd(signal.reason));
  }

  async take(length: number): Promise<Buffer> {
    for (;;) {
      if (this.#broken !== undefined) throw this.#broken;
      const bytes: Buffer | null = length === 0 ? Buffer.alloc(0) : this.#socket.read(length);
      if (bytes !== null) return bytes;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  release(): void {
    this.#aborting[Symbol.dispose]();
    this.#socket.off("readable", this.#onReadable).off("end", this.#onEnd).off("close", this.#onEnd);
    this.#socket.off("error", this.#onEnd);
  }
}
