import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { request as requestTls } from "node:https";
import { connect, createConnection } from "node:net";
import type { Duplex } from "node:stream";
import { connect as connectTls } from "node:tls";
import { constants, createDeflate, type Deflate } from "node:zlib";

/** Where to upgrade, and how. */
export interface UpgradeTarget {
  readonly port: number;
  readonly path: string;
  readonly secure: boolean;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export type UpgradeResult =
  | { readonly type: "upgraded"; readonly socket: Duplex; readonly head: Buffer; readonly response: IncomingMessage }
  | { readonly type: "refused"; readonly status: number; readonly text: string };

/** Asks for another protocol on a new connection. */
export async function upgrade(target: UpgradeTarget, headers: Record<string, string>): Promise<UpgradeResult> {
  const { port, path, secure, method = "POST" } = target;
  const send = secure ? requestTls : request;
  const where = { host: "127.0.0.1", port, rejectUnauthorized: false, allowHalfOpen: true };
  const createConnection = () => (secure ? connectTls(where) : connect(where));
  const sent = send({
    path,
    method,
    createConnection,
    headers: { Connection: "Upgrade", ...headers, ...target.headers },
  });
  return await new Promise((resolve, reject) => {
    sent.once("upgrade", (response, socket, head) => resolve({ type: "upgraded", response, socket, head }));
    sent.once("response", (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      response.once("end", () => resolve({ type: "refused", status: response.statusCode ?? 0, text }));
    });
    sent.once("error", reject);
    sent.end();
  });
}

const fin = 1;
const frames = { synStream: 1, synReply: 2, rstStream: 3, ping: 6, goAway: 7 } as const;

/** One stream of a SPDY connection; collects what comes. */
export class SpdyStream {
  readonly id: number;
  readonly #connection: SpdyConnection;
  readonly #chunks: Buffer[] = [];
  readonly ended: Promise<"finished" | "reset" | "cut">;
  #settle: (how: "finished" | "reset" | "cut") => void = () => {};
  onData: ((chunk: Buffer) => void) | undefined;
  received = 0;

  constructor(id: number, connection: SpdyConnection) {
    this.id = id;
    this.#connection = connection;
    this.ended = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
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

  take(chunk: Buffer): void {
    this.received += chunk.length;
    if (this.onData === undefined) this.#chunks.push(chunk);
    else this.onData(chunk);
  }

  finish(how: "finished" | "reset" | "cut"): void {
    this.#settle(how);
  }
}

/** As much of SPDY/3.1 as a client of exec, attach and port-forward needs. */
export class SpdyConnection implements Disposable {
  readonly socket: Duplex;
  readonly protocol: string;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #deflate: Deflate = createDeflate();
  #nextId = 1;
  #buffer: Buffer = Buffer.alloc(0);

  private constructor(socket: Duplex, head: Buffer, protocol: string) {
    this.socket = socket;
    this.protocol = protocol;
    socket.on("data", (chunk: Buffer) => this.#feed(chunk));
    socket.on("error", () => {});
    socket.on("close", () => {
      for (const stream of this.#streams.values()) stream.finish("cut");
    });
    if (head.length > 0) this.#feed(head);
  }

  static async open(target: UpgradeTarget, protocol: string): Promise<SpdyConnection> {
    const result = await upgrade(target, { Upgrade: "SPDY/3.1", "X-Stream-Protocol-Version": protocol });
    if (result.type === "refused") throw new Error(`refused with ${result.status}: ${result.text}`);
    const chosen = String(result.response.headers["x-stream-protocol-version"] ?? "");
    return new SpdyConnection(result.socket, result.head, chosen);
  }

  async stream(headers: Readonly<Record<string, string>>): Promise<SpdyStream> {
    const stream = new SpdyStream(this.#nextId, this);
    this.#nextId += 2;
    this.#streams.set(stream.id, stream);
    const block = await this.#headerBlock(headers);
    const body = Buffer.alloc(10);
    body.writeUInt32BE(stream.id, 0);
    await this.#control(frames.synStream, 0, Buffer.concat([body, block]));
    return stream;
  }

  /** From now on only counts what comes, until the other side ends; for figures in which reading must cost little. */
  async countRest(): Promise<number> {
    let bytes = 0;
    this.socket.removeAllListeners("data").on("data", (chunk: Buffer) => (bytes += chunk.length));
    await new Promise((resolve) => this.socket.once("end", resolve).once("close", resolve));
    return bytes;
  }

  async sendData(id: number, data: Buffer, flags: number): Promise<void> {
    const head = Buffer.alloc(8);
    head.writeUInt32BE(id, 0);
    head.writeUInt32BE(((flags << 24) | data.length) >>> 0, 4);
    await this.#write(Buffer.concat([head, data]));
  }

  /** The server's dictionary is only needed to read its headers, which say nothing of interest. */
  async #headerBlock(headers: Readonly<Record<string, string>>): Promise<Buffer> {
    const parts: Buffer[] = [uint32(Object.keys(headers).length)];
    for (const [name, value] of Object.entries(headers)) {
      parts.push(
        uint32(Buffer.byteLength(name)),
        Buffer.from(name),
        uint32(Buffer.byteLength(value)),
        Buffer.from(value),
      );
    }
    const chunks: Buffer[] = [];
    const collect = (chunk: Buffer): void => void chunks.push(chunk);
    this.#deflate.on("data", collect);
    this.#deflate.write(Buffer.concat(parts));
    await new Promise<void>((resolve) => this.#deflate.flush(constants.Z_SYNC_FLUSH, resolve));
    this.#deflate.off("data", collect);
    return Buffer.concat(chunks);
  }

  async #control(type: number, flags: number, body: Buffer): Promise<void> {
    const head = Buffer.alloc(8);
    head.writeUInt16BE(0x8003, 0);
    head.writeUInt16BE(type, 2);
    head.writeUInt32BE(((flags << 24) | body.length) >>> 0, 4);
    await this.#write(Buffer.concat([head, body]));
  }

  async #write(frame: Buffer): Promise<void> {
    if (this.socket.destroyed) return;
    if (this.socket.write(frame)) return;
    const decided = new AbortController();
    const seen = (event: string): Promise<unknown> =>
      once(this.socket, event, { signal: decided.signal }).catch(() => {});
    await Promise.race([seen("drain"), seen("close")]);
    decided.abort();
  }

  #feed(chunk: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk]);
    while (this.#buffer.length >= 8) {
      const length = this.#buffer.readUInt32BE(4) & 0xff_ffff;
      if (this.#buffer.length < 8 + length) return;
      const frame = this.#buffer.subarray(0, 8 + length);
      this.#buffer = this.#buffer.subarray(8 + length);
      this.#frame(frame.readUInt32BE(0), frame[4] ?? 0, frame.subarray(8));
    }
  }

  #frame(word: number, flags: number, body: Buffer): void {
    if ((word & 0x8000_0000) === 0) {
      const stream = this.#streams.get(word);
      if (body.length > 0) stream?.take(Buffer.from(body));
      if ((flags & fin) !== 0) stream?.finish("finished");
      return;
    }
    const type = word & 0xffff;
    if (type === frames.rstStream) this.#streams.get(body.readUInt32BE(0))?.finish("reset");
    if (type === frames.synReply && (flags & fin) !== 0) this.#streams.get(body.readUInt32BE(0))?.finish("finished");
    if (type === frames.ping) void this.#control(frames.ping, 0, Buffer.from(body));
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
    this.#deflate.close();
  }
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value, 0);
  return bytes;
}

export interface RemoteCommand {
  readonly error: SpdyStream;
  readonly stdin: SpdyStream | undefined;
  readonly stdout: SpdyStream;
  readonly stderr: SpdyStream | undefined;
  readonly resize: SpdyStream | undefined;
  readonly connection: SpdyConnection;
  /** Waits for the status that comes at the end. */
  exitCode(): Promise<number>;
}

export interface CommandOptions {
  readonly stdin?: boolean;
  readonly tty?: boolean;
}

/** Opens the streams of exec or attach in the order of kubectl. */
export async function remoteCommand(target: UpgradeTarget, options: CommandOptions = {}): Promise<RemoteCommand> {
  const { stdin: wantsStdin = false, tty = false } = options;
  const connection = await SpdyConnection.open(target, "v4.channel.k8s.io");
  const open = (streamtype: string): Promise<SpdyStream> => connection.stream({ streamtype });
  const error = await open("error");
  const stdin = wantsStdin ? await open("stdin") : undefined;
  const stdout = await open("stdout");
  const stderr = tty ? undefined : await open("stderr");
  const resize = tty ? await open("resize") : undefined;
  const exitCode = (): Promise<number> => error.ended.then(() => exitCodeOf(error.text));
  return { error, stdin, stdout, stderr, resize, connection, exitCode };
}

function exitCodeOf(text: string): number {
  const status = JSON.parse(text) as { status: string; details?: { causes?: { reason: string; message: string }[] } };
  if (status.status === "Success") return 0;
  const cause = status.details?.causes?.find(({ reason }) => reason === "ExitCode");
  if (cause === undefined) throw new Error(`the command failed: ${text}`);
  return Number(cause.message);
}

/** A plain TCP connection that sends its bytes as they are, for requests that no client would make. */
export async function rawRequest(port: number, text: string): Promise<string> {
  const socket = createConnection({ host: "127.0.0.1", port });
  socket.write(text);
  let answer = "";
  socket.on("data", (chunk) => (answer += chunk.toString("latin1")));
  socket.on("error", () => {});
  await once(socket, "close");
  return answer;
}
