// logind and systemd's KillUnit behind a bus, for tests: it gives out real locks, and knows which are still held.
import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import koffi from "koffi";
import { encodeMessage, type ReceivedMessage } from "../../src/connections/host/dbus/messages.ts";
import { type LogindAccess, logindAccess } from "../../src/connections/host/index.ts";
import { FakeConnection } from "./fake-systemd.ts";

const logindName = ":1.5";
const manager = "org.freedesktop.login1.Manager";

export class FakeLogind implements AsyncDisposable {
  maxDelaySeconds = 5;
  isPreparing = false;
  /** Settings that are written are not heeded, as where a later file says otherwise. */
  isStubborn = false;
  /** Every call by its member, in order. */
  readonly calls: string[] = [];
  readonly directory: string;
  readonly #server: Server;
  readonly #connections = new Set<FakeConnection>();
  /** Each lock by the end that only we have. */
  readonly #locks: number[] = [];

  private constructor(directory: string) {
    this.directory = directory;
    this.#server = createServer((socket) => {
      const connection = new FakeConnection(socket, (call) => void this.#answer(connection, call));
      this.#connections.add(connection);
      socket.once("close", () => this.#connections.delete(connection));
    });
  }

  static async start(): Promise<FakeLogind> {
    const fake = new FakeLogind(await mkdtemp(join(tmpdir(), "fake-logind-")));
    await fake.listen();
    return fake;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.#server.listen(this.socketPath, resolve));
  }

  get socketPath(): string {
    return join(this.directory, "bus");
  }

  get dropIns(): string {
    return join(this.directory, "logind.conf.d");
  }

  get access(): LogindAccess {
    return logindAccess(`unix:path=${this.socketPath}`, this.dropIns);
  }

  /** How many locks have not been given back. */
  get held(): number {
    return this.#locks.filter((end) => !isClosed(end)).length;
  }

  /** The machine is about to turn off, or not after all. */
  prepare(begins: boolean, sender = logindName): void {
    if (sender === logindName) this.isPreparing = begins;
    for (const connection of this.#connections) {
      const signal = { type: "signal", sender, path: "/org/freedesktop/login1", interface: manager } as const;
      connection.send({ ...signal, member: "PrepareForShutdown", signature: "b", body: [begins] });
    }
  }

  dropConnections(): void {
    for (const { socket } of this.#connections) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.dropConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const end of this.#locks) closeSync(end);
    await rm(this.directory, { recursive: true });
  }

  async #answer(connection: FakeConnection, call: ReceivedMessage): Promise<void> {
    const { member = "" } = call;
    this.calls.push(member);
    switch (member) {
      case "Get": {
        const [, property] = call.readBody();
        const value =
          property === "InhibitDelayMaxUSec"
            ? { signature: "t", value: BigInt(this.maxDelaySeconds) * 1_000_000n }
            : { signature: "b", value: this.isPreparing };
        return connection.reply(call, "v", [value], logindName);
      }
      case "KillUnit":
        await this.#readSettings();
        return connection.reply(call);
      case "Inhibit":
        if (!this.isPreparing) return this.#giveLock(connection.socket, call);
        return connection.refuse(call, "org.freedesktop.login1.OperationInProgress", "already running");
      case "Hello":
        return connection.reply(call, "s", [":1.77"]);
      default:
        return connection.reply(call);
    }
  }

  async #readSettings(): Promise<void> {
    if (this.isStubborn) return;
    for (const name of (await readdir(this.dropIns)).sort()) {
      const found = /^InhibitDelayMaxSec=(\d+)$/m.exec(await readFile(join(this.dropIns, name), "utf8"));
      if (found?.[1] !== undefined) this.maxDelaySeconds = Number(found[1]);
    }
  }

  #giveLock(socket: Socket, call: ReceivedMessage): void {
    const path = join(this.directory, `lock-${this.#locks.length}`);
    execFileSync("mkfifo", [path]);
    this.#locks.push(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
    const lock = openSync(path, constants.O_WRONLY);
    const reply = { type: "return", sender: logindName, serial: 1_000, replySerial: call.serial } as const;
    sendWithDescriptor(socket, encodeMessage({ ...reply, signature: "h", body: [0], descriptors: 1 }), lock);
    closeSync(lock);
  }
}

/** Nobody holds the other end any more. */
function isClosed(end: number): boolean {
  try {
    return readSync(end, Buffer.alloc(1)) === 0;
  } catch {
    return false;
  }
}

const libc = koffi.load(null);
const iovec = koffi.struct({ base: "void *", len: "size_t" });
const header = koffi.struct({
  name: "void *",
  namelen: "uint32_t",
  iov: koffi.pointer(iovec),
  iovlen: "size_t",
  control: "void *",
  controllen: "size_t",
  flags: "int",
});
const sendmsg = libc.func("sendmsg", "long", ["int", koffi.pointer(header), "int"]);

/** Node can't pass descriptors on; nothing else may be waiting to be written to the socket. */
function sendWithDescriptor(socket: Socket, bytes: Buffer, descriptor: number): void {
  const control = Buffer.alloc(24);
  control.writeBigUInt64LE(20n, 0);
  control.writeInt32LE(1, 8);
  control.writeInt32LE(1, 12);
  control.writeInt32LE(descriptor, 16);
  const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle;
  const iov = { base: bytes, len: bytes.length };
  const sent = sendmsg(fd, { name: null, namelen: 0, iov, iovlen: 1, control, controllen: 24, flags: 0 }, 0);
  if (sent !== bytes.length) throw new Error(`sent ${sent} of ${bytes.length} bytes`);
}
