import type { Duplex } from "node:stream";
import type { Clock, Timer } from "../../../ground/base/index.ts";

/** Messages of a WebSocket, the server's side (RFC 6455). */
export interface WebSocketMessage {
  readonly kind: "text" | "binary";
  readonly content: Buffer;
}

const longestMessage = 1024 * 1024;
/** Of a frame that is about the connection itself, by RFC 6455. */
const longestControl = 125;
const firstControl = 8;
/** A client that is held back is not listened to: what tells that it has gone is that it takes nothing any more. */
const probeMs = 10_000;
const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

interface Frame {
  readonly opcode: number;
  readonly isLast: boolean;
  readonly content: Buffer;
  readonly bytes: number;
}

/** The first frame in the buffer; undefined: it is not all there. Throws when it is none that a client may send. */
export function parseFrame(buffer: Buffer): Frame | undefined {
  if (buffer.length < 2) return undefined;
  const first = buffer[0] ?? 0;
  const second = buffer[1] ?? 0;
  if ((second & 0x80) === 0 || (first & 0x70) !== 0)
    throw new Error("a client must mask its frames and use no extensions");
  let length = second & 0x7f;
  let at = 2;
  if (length === 126) {
    if (buffer.length < 4) return undefined;
    length = buffer.readUInt16BE(2);
    at = 4;
  } else if (length === 127) {
    if (buffer.length < 10) return undefined;
    length = Number(buffer.readBigUInt64BE(2));
    at = 10;
  }
  const isControl = (first & 0x0f) >= firstControl;
  if (length > (isControl ? longestControl : longestMessage)) throw new Error("a frame is too long");
  if (buffer.length < at + 4 + length) return undefined;
  const mask = buffer.subarray(at, at + 4);
  const content = Buffer.from(buffer.subarray(at + 4, at + 4 + length));
  for (let index = 0; index < content.length; index++) content[index] = (content[index] ?? 0) ^ (mask[index % 4] ?? 0);
  return { opcode: first & 0x0f, isLast: (first & 0x80) !== 0, content, bytes: at + 4 + length };
}

/** A frame as servers send it: whole, and not masked. */
export function encodeFrame(opcode: number, content: Buffer): Buffer {
  const head = content.length < 126 ? Buffer.alloc(2) : content.length < 65_536 ? Buffer.alloc(4) : Buffer.alloc(10);
  head[0] = 0x80 | opcode;
  if (head.length === 2) head[1] = content.length;
  else if (head.length === 4) {
    head[1] = 126;
    head.writeUInt16BE(content.length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(content.length), 2);
  }
  return Buffer.concat([head, content]);
}

export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #clock: Clock;
  readonly closed: Promise<void>;
  #buffer: Buffer = Buffer.alloc(0);
  #isOver = false;
  #probe: Timer | undefined;
  #parts: { kind: WebSocketMessage["kind"]; chunks: Buffer[]; bytes: number } | undefined;

  /** `onMessage` answers whether more may come. */
  constructor(socket: Duplex, clock: Clock, onMessage: (message: WebSocketMessage) => boolean) {
    this.#socket = socket;
    this.#clock = clock;
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    socket.once("close", () => this.#probe?.cancel());
    socket.once("end", () => socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      if (this.#isOver) return;
      this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
      try {
        if (!this.#take(onMessage)) this.#pause();
      } catch {
        socket.destroy();
      }
    });
  }

  resume(): void {
    this.#probe?.cancel();
    this.#socket.resume();
  }

  #pause(): void {
    if (this.#isOver || this.#socket.destroyed) return;
    this.#socket.pause();
    const probe = (): void => {
      if (!this.#socket.writableNeedDrain) this.#socket.write(encodeFrame(opcodes.ping, Buffer.alloc(0)));
      this.#probe = this.#clock.after(probeMs, probe);
    };
    this.#probe?.cancel();
    this.#probe = this.#clock.after(probeMs, probe);
  }

  /** Resolves when the connection can take more. */
  async send(kind: WebSocketMessage["kind"], content: Buffer): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded || socket.write(encodeFrame(opcodes[kind], content))) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        socket.off("drain", done).off("close", done);
        resolve();
      };
      socket.on("drain", done).on("close", done);
    });
  }

  /** Says that it is over. What the client still says is for nobody, but must be read to see that it has left. */
  close(): void {
    if (this.#socket.destroyed || this.#isOver) return;
    this.#isOver = true;
    this.#buffer = Buffer.alloc(0);
    this.#socket.end(encodeFrame(opcodes.close, Buffer.from([3, 232])));
    this.resume();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #take(onMessage: (message: WebSocketMessage) => boolean): boolean {
    let mayGoOn = true;
    for (let frame = parseFrame(this.#buffer); frame !== undefined; frame = parseFrame(this.#buffer)) {
      this.#buffer = this.#buffer.subarray(frame.bytes);
      if (frame.opcode === opcodes.close) {
        this.close();
        return true;
      }
      if (frame.opcode === opcodes.ping) this.#pong(frame.content);
      else if (frame.opcode <= opcodes.binary) mayGoOn = this.#collect(frame, onMessage) && mayGoOn;
    }
    return mayGoOn;
  }

  /** A client that asks and does not read the answers gets no more of them. */
  #pong(content: Buffer): void {
    if (!this.#socket.writableNeedDrain) this.#socket.write(encodeFrame(opcodes.pong, content));
  }

  #collect(frame: Frame, onMessage: (message: WebSocketMessage) => boolean): boolean {
    if (frame.opcode !== opcodes.continuation) {
      this.#parts = { kind: frame.opcode === opcodes.text ? "text" : "binary", chunks: [], bytes: 0 };
    }
    const parts = this.#parts;
    if (parts === undefined) throw new Error("a message without a beginning");
    parts.bytes += frame.content.length;
    if (parts.bytes > longestMessage) throw new Error("a message is too long");
    if (frame.content.length > 0) parts.chunks.push(frame.content);
    if (!frame.isLast) return true;
    this.#parts = undefined;
    return onMessage({ kind: parts.kind, content: Buffer.concat(parts.chunks) });
  }
}
