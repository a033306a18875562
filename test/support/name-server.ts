import { createSocket } from "node:dgram";
import { once } from "node:events";

/** A name server on this machine: knows some IPv4 addresses, says no to other names, and stays silent on the rest. */
export class NameServer implements AsyncDisposable {
  readonly #socket = createSocket("udp4");
  readonly asked: string[] = [];
  readonly #known: ReadonlyMap<string, string>;
  readonly #isSilent: (name: string) => boolean;

  private constructor(known: ReadonlyMap<string, string>, isSilent: (name: string) => boolean) {
    this.#known = known;
    this.#isSilent = isSilent;
    this.#socket.on("message", (message, { port, address }) => {
      const { name, type, end } = question(message);
      this.asked.push(name);
      if (!this.#isSilent(name)) this.#socket.send(this.#answer(message, name, type, end), port, address);
    });
  }

  static async start(
    known: Readonly<Record<string, string>>,
    isSilent: (name: string) => boolean,
  ): Promise<NameServer> {
    const server = new NameServer(new Map(Object.entries(known)), isSilent);
    server.#socket.bind(0, "127.0.0.1");
    await once(server.#socket, "listening");
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.#socket.address().port}`;
  }

  #answer(message: Buffer, name: string, type: number, end: number): Buffer {
    const address = type === 1 ? this.#known.get(name) : undefined;
    const head = Buffer.from(message.subarray(0, 12));
    const noSuchName = this.#known.has(name) ? 0 : 3;
    head.writeUInt16BE(0x8180 | noSuchName, 2);
    head.writeUInt16BE(address === undefined ? 0 : 1, 6);
    head.writeUInt32BE(0, 8);
    const parts = [head, message.subarray(12, end)];
    if (address !== undefined) {
      const record = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
      parts.push(record, Buffer.from(address.split(".").map(Number)));
    }
    return Buffer.concat(parts);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#socket.close();
    await once(this.#socket, "close");
  }
}

function question(message: Buffer): { readonly name: string; readonly type: number; readonly end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = message[at] ?? 0; length > 0; length = message[at] ?? 0) {
    labels.push(message.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: message.readUInt16BE(at + 1), end: at + 5 };
}
