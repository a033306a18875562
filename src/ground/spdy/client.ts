import type { Duplex } from "node:stream";
import {
  controlFrame,
  dataFrame,
  FrameCutter,
  fin,
  frameKinds,
  type SpdyFrame,
  sendFrame,
  streamIn,
  uint32,
} from "./frames.ts";
import { HeaderWriter } from "./headers.ts";

/** What is collected of a stream that nobody listens to. */
const mostCollected = 16 * 1024 * 1024;

/** How a stream came to its end: in good order, cut by the other side, or with its connection. */
export type StreamEnd = "finished" | "reset" | "cut";

/** One stream of a SPDY connection; collects what comes, or hands it on. */
export class SpdyStream {
  readonly id: number;
  readonly #connection: SpdyConnection;
  readonly #chunks: Buffer[] = [];
  readonly ended: Promise<StreamEnd>;
  #settle: (how: StreamEnd) => void = () => {};
  /** Is handed what comes; nothing more of the connection is read until its promise settles. */
  onData: ((chunk: Buffer) => unknown) | undefined;
  received = 0;

  constructor(id: number, connection: SpdyConnection) {
    this.id = id;
    this.#connection = connection;
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get text(): string {
    return this.bytes.toString();
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#chunks);
  }

  /** Resolves when the connection can take more. */
  async write(data: Buffer | string): Promise<void> {
    await this.#connection.sendData(this.id, Buffer.from(data), 0);
  }

  /** Says that nothing more will be written. */
  async end(): Promise<void> {
    await this.#connection.sendData(this.id, Buffer.alloc(0), fin);
  }

  take(chunk: Buffer): unknown {
    this.received += chunk.length;
    if (this.onData !== undefined) return this.onData(chunk);
    if (this.received <= mostCollected) this.#chunks.push(chunk);
    return undefined;
  }

  finish(how: StreamEnd): void {
    this.#settle(how);
  }
}

/** The client's side. The server's headers are not read: they say nothing of interest. */
export class SpdyConnection implements Disposable {
  readonly socket: Duplex;
  /** Of the streams, as the server chose it. */
  readonly protocol: string;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #writer = new HeaderWriter();
  readonly #cutter = new FrameCutter();
  #nextId = 1;
  /** What comes is handed on in order, one piece after the other. */
  #reading: Promise<void> = Promise.resolve();

  constructor(socket: Duplex, head: Buffer, protocol: string) {
    this.socket = socket;
    this.protocol = protocol;
    socket.on("data", (chunk: Buffer) => this.#read(chunk));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#reading = this.#reading.then(() => {
        for (const stream of this.#streams.values()) stream.finish("cut");
      });
    });
    if (head.length > 0) this.#read(head);
  }

  async stream(headers: Readonly<Record<string, string>>): Promise<SpdyStream> {
    const stream = new SpdyStream(this.#nextId, this);
    this.#nextId += 2;
    this.#streams.set(stream.id, stream);
    const block = await this.#writer.write(headers);
    const body = [uint32(stream.id), Buffer.alloc(6), block];
    await this.#send(controlFrame(frameKinds.synStream, Buffer.concat(body)));
    return stream;
  }

  async sendData(id: number, data: Buffer, flags: number): Promise<void> {
    await this.#send(dataFrame(id, data, flags));
  }

  async #send(frame: Buffer): Promise<void> {
    if (!this.socket.destroyed) await sendFrame(this.socket, frame);
  }

  #read(chunk: Buffer): void {
    this.socket.pause();
    this.#reading = this.#reading
      .then(() => this.#feed(chunk))
      .then(() => void this.socket.resume())
      // Whoever takes the data failed at it; there is nobody left to talk to.
      .catch(() => void this.socket.destroy());
  }

  async #feed(chunk: Buffer): Promise<void> {
    for (const frame of this.#cutter.push(chunk)) await this.#take(frame);
  }

  async #take(frame: SpdyFrame): Promise<void> {
    const { isLast, content } = frame;
    if (frame.type === "data") {
      const stream = this.#streams.get(frame.id);
      if (content.length > 0) await stream?.take(Buffer.from(content));
      if (isLast) stream?.finish("finished");
      return;
    }
    if (frame.kind === frameKinds.ping) void this.#send(controlFrame(frameKinds.ping, Buffer.from(content)));
    if (frame.kind !== frameKinds.rstStream && frame.kind !== frameKinds.synReply) return;
    const named = this.#streams.get(streamIn(content));
    if (frame.kind === frameKinds.rstStream) named?.finish("reset");
    else if (isLast) named?.finish("finished");
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
    this.#writer[Symbol.dispose]();
  }
}
