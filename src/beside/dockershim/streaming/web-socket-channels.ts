import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import { type Clock, unlessAborted, withDeadline } from "../../../ground/base/index.ts";
import { WebSocketConnection } from "./web-socket.ts";

const magic = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const zero = "0".charCodeAt(0);
/** A client that has heard the end closes; one that does not is left. */
const goodbyeMs = 10_000;

/** `protocol`: what the client is told; undefined where it has asked for none. */
export function acceptWebSocket(socket: Duplex, key: string, protocol: string | undefined): void {
  const accept = createHash("sha1").update(`${key}${magic}`).digest("base64");
  const chosen = protocol === undefined ? "" : `Sec-WebSocket-Protocol: ${protocol}\r\n`;
  socket.write(
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\n${chosen}\r\n`,
  );
}

/** Several streams over one WebSocket: the first byte of a message names the channel. */
export class ChannelConnection {
  readonly #connection: WebSocketConnection;
  /** Those protocols carry text: the channel as a digit, and what is said in base64. */
  readonly #isText: boolean;
  readonly #clock: Clock;

  /** `onMessage` answers whether more may come. */
  constructor(socket: Duplex, protocol: string, clock: Clock, onMessage: (channel: number, bytes: Buffer) => boolean) {
    this.#isText = protocol.includes("base64");
    this.#clock = clock;
    this.#connection = new WebSocketConnection(socket, clock, ({ content }) => {
      const [first] = content;
      if (first === undefined) return true;
      const rest = content.subarray(1);
      if (!this.#isText) return onMessage(first, rest);
      return onMessage(first - zero, Buffer.from(rest.toString("latin1"), "base64"));
    });
  }

  get closed(): Promise<void> {
    return this.#connection.closed;
  }

  resume(): void {
    this.#connection.resume();
  }

  /** Resolves when the connection can take more. */
  async send(channel: number, content: Buffer): Promise<void> {
    if (this.#isText) {
      const text = `${String.fromCharCode(zero + channel)}${content.toString("base64")}`;
      return await this.#connection.send("text", Buffer.from(text));
    }
    await this.#connection.send("binary", Buffer.concat([Buffer.of(channel), content]));
  }

  /** Says `last`, if anything, and that it is over; resolves when the connection is gone. */
  async finish(last: { readonly channel: number; readonly content: Buffer } | undefined, signal: AbortSignal) {
    const over = (): Error => new Error("the client did not close");
    const goodbye = async (): Promise<void> => {
      if (last !== undefined) await this.send(last.channel, last.content);
      this.#connection.close();
      await this.closed;
    };
    try {
      await withDeadline(this.#clock, goodbyeMs, over, signal, (bounded) => unlessAborted(goodbye(), bounded));
    } catch {
      // It has had its time.
    } finally {
      this.#connection.destroy();
    }
  }
}
