// systemd behind a bus, for tests: it keeps units, and owns the control files of their cgroups as the real one does.
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MessageStream } from "../../src/connections/host/dbus/message-stream.ts";
import { type BusMessage, encodeMessage, type ReceivedMessage } from "../../src/connections/host/dbus/messages.ts";
import type { BusValue, BusVariant } from "../../src/connections/host/dbus/values.ts";
import type { SystemdSocket } from "../../src/connections/host/systemd/manager.ts";

/** What systemd does to a machine's cgroups. */
export interface FakeSystemdCgroups {
  /** Makes the slice's directories, with the values that systemd has for it and its defaults for all others. */
  realise(unit: string, properties: ReadonlyMap<string, BusValue>): Promise<void>;
  /** Only what has been set, on a cgroup that is there. */
  apply(unit: string, properties: ReadonlyMap<string, BusValue>): Promise<void>;
  remove(unit: string): Promise<void>;
}

const noCgroups: FakeSystemdCgroups = { realise: async () => {}, apply: async () => {}, remove: async () => {} };

const manager = "org.freedesktop.systemd1.Manager";
const systemdName = ":1.1";

export class FakeSystemd implements AsyncDisposable {
  /** What each unit that is loaded has been told. */
  readonly units = new Map<string, Map<string, BusValue>>();
  /** Every call by its member, in order, with the unit it names. */
  readonly calls: string[] = [];
  /** What to do instead of answering, by member. */
  readonly instead = new Map<string, (connection: FakeConnection, call: ReceivedMessage) => void>();
  /** The results of jobs, by unit; `done` for all others. */
  readonly results = new Map<string, string>();
  /** Tells the end of a job before the job's name, as systemd may. */
  endsJobsEarly = false;
  readonly #server: Server;
  readonly #directory: string;
  readonly #connections = new Set<FakeConnection>();
  readonly #cgroups: FakeSystemdCgroups;
  #jobs = 0;

  private constructor(directory: string, cgroups: FakeSystemdCgroups) {
    this.#directory = directory;
    this.#cgroups = cgroups;
    this.#server = createServer((socket) => {
      const connection = new FakeConnection(socket, (call) => this.#answer(connection, call));
      this.#connections.add(connection);
      socket.once("close", () => this.#connections.delete(connection));
    });
  }

  static async start(cgroups = noCgroups): Promise<FakeSystemd> {
    const fake = new FakeSystemd(await mkdtemp(join(tmpdir(), "fake-systemd-")), cgroups);
    await new Promise<void>((resolve) => fake.#server.listen(fake.socket.path, resolve));
    return fake;
  }

  get socket(): SystemdSocket {
    return { kind: "bus", path: join(this.#directory, "bus") };
  }

  get connections(): ReadonlySet<FakeConnection> {
    return this.#connections;
  }

  /** `systemctl daemon-reload`: every unit gets what systemd has for it, and nothing else. */
  async reload(): Promise<void> {
    this.signal({ member: "Reloading", signature: "b", body: [true] });
    for (const [unit, properties] of this.units) await this.#cgroups.realise(unit, properties);
    this.signal({ member: "Reloading", signature: "b", body: [false] });
  }

  /** A runtime starts a container's scope: the slices above it are made, where systemd does not have them, and realised. */
  async startScope(...slices: readonly string[]): Promise<void> {
    for (const slice of slices) {
      if (!this.units.has(slice)) this.units.set(slice, new Map());
      await this.#cgroups.realise(slice, this.units.get(slice) ?? new Map());
    }
  }

  signal(signal: Pick<BusMessage, "member" | "signature" | "body"> & { readonly sender?: string }): void {
    for (const connection of this.#connections) {
      connection.send({
        type: "signal",
        sender: systemdName,
        path: "/org/freedesktop/systemd1",
        interface: manager,
        ...signal,
      });
    }
  }

  dropConnections(): void {
    for (const connection of this.#connections) connection.socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.dropConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    await rm(this.#directory, { recursive: true });
  }

  #answer(connection: FakeConnection, call: ReceivedMessage): void {
    const { member = "" } = call;
    const body = call.readBody();
    this.calls.push(typeof body[0] === "string" && member.includes("Unit") ? `${member} ${body[0]}` : member);
    const instead = this.instead.get(member);
    if (instead === undefined) void this.#perform(connection, call, member, body);
    else instead(connection, call);
  }

  async #perform(
    connection: FakeConnection,
    call: ReceivedMessage,
    member: string,
    body: readonly BusValue[],
  ): Promise<void> {
    const [unit, , settings] = body as [string, unknown, readonly (readonly [string, BusVariant])[]];
    switch (member) {
      case "Get":
        return connection.reply(call, "v", [{ signature: "s", value: "252.38-1~deb12u1" }]);
      case "StartTransientUnit":
        if (this.units.has(unit))
          return connection.refuse(call, "org.freedesktop.systemd1.UnitExists", `Unit ${unit} exists`);
        this.units.set(unit, new Map(settings.map(([name, { value }]) => [name, value])));
        await this.#cgroups.realise(unit, this.units.get(unit) ?? new Map());
        return this.#job(connection, call, unit);
      case "StartUnit":
        return this.#job(connection, call, unit);
      case "SetUnitProperties": {
        const news = new Map(settings.map(([name, { value }]) => [name, value]));
        const properties = this.units.get(unit) ?? new Map<string, BusValue>();
        for (const [name, value] of news) properties.set(name, value);
        this.units.set(unit, properties);
        await this.#cgroups.apply(unit, news);
        return connection.reply(call);
      }
      case "StopUnit":
        if (!this.units.delete(unit))
          return connection.refuse(call, "org.freedesktop.systemd1.NoSuchUnit", `Unit ${unit} not loaded.`);
        await this.#cgroups.remove(unit);
        return this.#job(connection, call, unit);
      case "Hello":
        return connection.reply(call, "s", [":1.77"]);
      default:
        return connection.reply(call);
    }
  }

  #job(connection: FakeConnection, call: ReceivedMessage, unit: string): void {
    const job = `/org/freedesktop/systemd1/job/${++this.#jobs}`;
    const result = this.results.get(unit) ?? "done";
    if (!this.endsJobsEarly) connection.reply(call, "o", [job]);
    this.signal({ member: "JobRemoved", signature: "uoss", body: [this.#jobs, job, unit, result] });
    if (this.endsJobsEarly) connection.reply(call, "o", [job]);
  }
}

/** One client of the bus. */
export class FakeConnection {
  readonly socket: Socket;
  #serial = 0;

  constructor(socket: Socket, onCall: (call: ReceivedMessage) => void) {
    this.socket = socket;
    socket.on("error", () => {});
    const messages = new MessageStream();
    let lines: string | undefined = "";
    socket.on("data", (bytes) => {
      if (lines === undefined) {
        for (const message of messages.take(bytes)) onCall(message);
        return;
      }
      lines += bytes.toString("latin1");
      if (lines.endsWith("AUTH EXTERNAL\r\n")) socket.write("DATA\r\n");
      if (lines.endsWith("DATA\r\n")) socket.write("OK 0123456789abcdef\r\n");
      if (lines.endsWith("NEGOTIATE_UNIX_FD\r\n")) socket.write("AGREE_UNIX_FD\r\n");
      const begun = lines.indexOf("BEGIN\r\n");
      if (begun < 0) return;
      const rest = Buffer.from(lines.slice(begun + "BEGIN\r\n".length), "latin1");
      lines = undefined;
      if (rest.length > 0) for (const message of messages.take(rest)) onCall(message);
    });
  }

  reply(call: ReceivedMessage, signature?: string, body: readonly BusValue[] = [], sender = systemdName): void {
    this.send({ type: "return", replySerial: call.serial, sender, ...(signature && { signature }), body });
  }

  refuse(call: ReceivedMessage, errorName: string, text: string): void {
    this.send({
      type: "error",
      replySerial: call.serial,
      sender: systemdName,
      errorName,
      signature: "s",
      body: [text],
    });
  }

  send(message: Omit<BusMessage, "serial">): void {
    this.socket.write(encodeMessage({ ...message, serial: ++this.#serial }));
  }
}
