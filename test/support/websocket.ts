import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { type UpgradeTarget, upgrade } from "./spdy.ts";

/** A WebSocket client with Kubernetes' channels: the first byte of each message is the channel's number. */
export class ChannelSocket implements Disposable {
  readonly protocol: string;
  readonly #socket: Duplex;
  readonly #channels = new Map<number, Buffer[]>();
  readonly closed: Promise<void>;
  #buffer: Buffer = Buffer.alloc(0);

  get #isText(): boolean {
    return this.protocol.includes("base64");
  }

  private constructor(socket: Duplex, head: Buffer, protocol: string) {
    this.#socket = socket;
    this.protocol = protocol;
    this.closed = new Promise((resolve) => socket.once("close", resolve));
    socket.on("error", () => {});
    socket.on("data", (chunk: Buffer) => this.#feed(chunk));
    this.#feed(head);
  }

  static async open(target: UpgradeTarget, protocols: string): Promise<ChannelSocket> {
    const headers = {
      Upgrade: "websocket",
      "Sec-WebSocket-Version": "13",
      "Sec-WebSocket-Key": randomBytes(16).toString("base64"),
      "Sec-WebSocket-Protocol": protocols,
    };
    const result = await upgrade({ method: "GET", ...target }, headers);
    if (result.type === "refused") throw new Error(`refused with ${result.status}: ${result.text}`);
    return new ChannelSocket(result.socket, result.head, String(result.response.headers["sec-websocket-protocol"]));
  }

  text(channel: number): string {
    return this.bytes(channel).toString();
  }

  bytes(channel: number): Buffer {
    return Buffer.concat(this.#channels.get(channel) ?? []);
  }

  send(channel: number, data: Buffer | string): void {
    const payload = this.#isText
      ? Buffer.from(`${channel}${Buffer.from(data).toString("base64")}`)
      : Buffer.concat([Buffer.from([channel]), Buffer.from(data)]);
    const mask = randomBytes(4);
    const masked = payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0));
    const head = payload.length < 126 ? Buffer.from([0x82, 0x80 | payload.length]) : Buffer.alloc(4);
    if (payload.length >= 126) {
      head.writeUInt16BE(0x82fe, 0);
      head.writeUInt16BE(payload.length, 2);
    }
    this.#socket.write(Buffer.concat([head, mask, masked]));
  }

  #feed(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk]);
    for (;;) {
      const small = (this.#buffer[1] ?? 0) & 0x7f;
      const headLength = small === 126 ? 4 : small === 127 ? 10 : 2;
      if (this.#buffer.length < headLength) return;
      const length =
        small === 126 ? this.#buffer.readUInt16BE(2) : small === 127 ? Number(this.#buffer.readBigUInt64BE(2)) : small;
      if (this.#buffer.length < headLength + length) return;
      const opcode = (this.#buffer[0] ?? 0) & 0x0f;
      const payload = Buffer.from(this.#buffer.subarray(headLength, headLength + length));
      this.#buffer = this.#buffer.subarray(headLength + length);
      if (opcode === 8) this.#socket.end();
      else if (opcode <= 2 && payload.length > 0) this.#take(payload);
    }
  }

  #take(payload: Buffer): void {
    const first = payload[0] ?? 0;
    const channel = this.#isText ? Number(String.fromCharCode(first)) : first;
    const rest = payload.subarray(1);
    const chunks = this.#channels.get(channel) ?? [];
    chunks.push(this.#isText ? Buffer.from(rest.toString("latin1"), "base64") : rest);
    this.#channels.set(channel, chunks);
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
