import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";

/** Where bytes go that no proper client would send. */
export interface RawPlace {
  readonly port: number;
  readonly secure: boolean;
}

/** A connection that sends what it is told and keeps what comes. */
export class RawClient implements Disposable {
  readonly socket: Duplex;
  readonly closed: Promise<void>;
  #text = "";

  private constructor(socket: Duplex) {
    this.socket = socket;
    socket.on("data", (chunk: Buffer) => (this.#text += chunk.toString("latin1")));
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => socket.once("close", () => resolve()));
  }

  /** Resolves when bytes can be sent: with TLS, after the handshake. */
  static async open({ port, secure }: RawPlace): Promise<RawClient> {
    const where = { host: "127.0.0.1", port, rejectUnauthorized: false };
    const socket: Socket = secure ? connectTls(where) : connect(where);
    await new Promise<void>((resolve, reject) => {
      socket.once(secure ? "secureConnect" : "connect", resolve);
      socket.once("error", reject);
    });
    return new RawClient(socket);
  }

  get text(): string {
    return this.#text;
  }

  /** The status of each answer so far. */
  get statuses(): readonly number[] {
    return [...this.#text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  }

  /** Resolves when the bytes have left, or when nobody takes them any more. */
  async send(bytes: string | Buffer): Promise<void> {
    if (this.socket.destroyed) return;
    await new Promise<void>((resolve) => {
      this.socket.once("close", resolve);
      this.socket.write(bytes, "latin1", () => {
        this.socket.off("close", resolve);
        resolve();
      });
    });
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

/** What comes back until the server closes the connection. */
export async function rawAnswer(place: RawPlace, bytes: string | Buffer): Promise<RawClient> {
  const client = await RawClient.open(place);
  await client.send(bytes);
  await client.closed;
  return client;
}
