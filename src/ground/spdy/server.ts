import { Duplex } from "node:stream";
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
import { HeaderReader, HeaderWriter } from "./headers.ts";

const largestWrite = 32 * 1024;
const mostStreams = 1000;

/** One stream of a session. What is not read holds the whole connection back, as TCP would. */
export class ServedStream extends Duplex {
  readonly id: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly #session: SpdySession;

  constructor(id: number, headers: ReadonlyMap<string, string>, session: SpdySession) {
    super({ allowHalfOpen: true, autoDestroy: false });
    this.id = id;
    this.headers = headers;
    this.#session = session;
    this.on("error", () => {});
  }

  override _read(): void {
    this.#session.resume(this);
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    void this.#writeAll(chunk).then(() => done(), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#session.sendData(this.id, Buffer.alloc(0), fin).then(() => done(), done);
  }

  async #writeAll(chunk: Buffer): Promise<void> {
    for (let at = 0; at < chunk.length; at += largestWrite) {
      await this.#session.sendData(this.id, chunk.subarray(at, at + largestWrite), 0);
    }
  }
}

/** The server's side. */
export class SpdySession implements Disposable {
  readonly #socket: Duplex;
  readonly #onStream: (stream: ServedStream) => void;
  readonly #streams = new Map<number, ServedStream>();
  readonly #full = new Set<ServedStream>();
  readonly #reader = new HeaderReader();
  readonly #writer = new HeaderWriter();
  readonly closed: Promise<void>;
  /** Frames are handled one after the other: headers take a moment to be unpacked. */
  #handling: Promise<void> = Promise.resolve();
  readonly #cutter = new FrameCutter();
  #lastId = 0;

  constructor(socket: Duplex, onStream: (stream: ServedStream) => void) {
    this.#socket = socket;
    this.#onStream = onStream;
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => socket.destroy());
    // No client of SPDY closes one half only: it has left.
    socket.once("end", () => {
      this.#endAll();
      socket.end();
    });
    socket.once("close", () => this.#endAll());
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
  }

  resume(stream: ServedStream): void {
    this.#full.delete(stream);
    if (this.#full.size === 0) this.#socket.resume();
  }

  async sendData(id: number, data: Buffer, flags: number): Promise<void> {
    await this.#send(dataFrame(id, data, flags));
  }

  /** Both sides have said all on this stream. */
  release({ id }: ServedStream): void {
    this.#forget(id);
  }

  /** Ends a stream without a word. */
  async reset(id: number, status = 5): Promise<void> {
    this.#forget(id);
    await this.#send(controlFrame(frameKinds.rstStream, Buffer.concat([uint32(id), uint32(status)])));
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
    this.#reader[Symbol.dispose]();
    this.#writer[Symbol.dispose]();
  }

  #take(chunk: Buffer): void {
    let frames: readonly SpdyFrame[];
    try {
      frames = this.#cutter.push(chunk);
    } catch {
      return void this.#socket.destroy();
    }
    if (frames.length === 0) return;
    this.#socket.pause();
    this.#handling = this.#handling.then(async () => {
      for (const frame of frames) await this.#handle(frame);
      if (this.#full.size === 0) this.#socket.resume();
    });
    this.#handling.catch(() => this.#socket.destroy());
  }

  async #handle(frame: SpdyFrame): Promise<void> {
    const { isLast, content } = frame;
    if (frame.type === "data") return this.#data(frame.id, isLast, content);
    switch (frame.kind) {
      case frameKinds.synStream:
        return await this.#open(isLast, content);
      case frameKinds.rstStream:
        return this.#forget(streamIn(content));
      case frameKinds.ping:
        // Those with even numbers answer ours.
        if (content.readUInt32BE(0) % 2 === 1) await this.#send(controlFrame(frameKinds.ping, Buffer.from(content)));
        return;
      case frameKinds.headers:
        // Nobody needs them, but what follows can't be read without having read them.
        return void (await this.#reader.read(content.subarray(4)));
      default:
        // Settings, windows and the like: Kubernetes' own library does without as well.
        return;
    }
  }

  #data(id: number, isLast: boolean, content: Buffer): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    if (content.length > 0 && !stream.push(Buffer.from(content))) this.#full.add(stream);
    if (isLast) stream.push(null);
  }

  async #open(isLast: boolean, content: Buffer): Promise<void> {
    const id = streamIn(content);
    const headers = await this.#reader.read(content.subarray(10));
    if (id <= this.#lastId || id % 2 === 0 || this.#streams.size >= mostStreams) return await this.reset(id, 3);
    this.#lastId = id;
    const stream = new ServedStream(id, headers, this);
    this.#streams.set(id, stream);
    stream.once("close", () => this.#forget(id));
    const reply = Buffer.concat([uint32(id), await this.#writer.write({})]);
    await this.#send(controlFrame(frameKinds.synReply, reply));
    if (isLast) stream.push(null);
    this.#onStream(stream);
  }

  #forget(id: number): void {
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    this.#streams.delete(id);
    this.resume(stream);
    stream.destroy();
  }

  #endAll(): void {
    for (const stream of this.#streams.values()) {
      if (!stream.readableEnded) stream.push(null);
      stream.destroy();
    }
    this.#streams.clear();
    this.#full.clear();
  }

  async #send(frame: Buffer): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableEnded) throw new Error("the connection is closed");
    await sendFrame(socket, frame);
  }
}
