import { type Clock, type Logger, mapAtMost, messageOf } from "../../../ground/base/index.ts";
import {
  BusCallError,
  BusConnection,
  BusLostError,
  type BusReply,
  type BusValue,
  type BusVariant,
  type ReceivedMessage,
} from "../dbus/index.ts";
import { UnitJobs } from "./unit-jobs.ts";

/** A setting of a unit, such as MemoryMax. */
export type UnitProperty = readonly [name: string, value: BusVariant];

/** Where systemd can be spoken to. */
export interface SystemdSocket {
  /** `bus`: through the system bus, which knows systemd by name. `direct`: systemd's own socket, for root. */
  readonly kind: "bus" | "direct";
  readonly path: string;
}

/** systemd answers within milliseconds, except while it reloads thousands of units. */
const callTimeoutMs = 30_000;
/** What is asked while connecting; the next socket is tried after it. */
const setUpTimeoutMs = 10_000;

const service = "org.freedesktop.systemd1";
const managerPath = "/org/freedesktop/systemd1";
const managerInterface = `${service}.Manager`;
const busName = "org.freedesktop.DBus";

const matches = [
  `type='signal',sender='${service}',interface='${managerInterface}',member='JobRemoved'`,
  `type='signal',sender='${service}',interface='${managerInterface}',member='Reloading'`,
  `type='signal',sender='${busName}',interface='${busName}',member='NameOwnerChanged',arg0='${service}'`,
];

interface Link {
  readonly kind: SystemdSocket["kind"];
  readonly connection: BusConnection;
  readonly jobs: UnitJobs;
  /** Rejects when the connection ends. */
  readonly lost: Promise<never>;
  readonly version: number;
  /** Who systemd is on the bus; nobody else is believed. */
  sender: string | undefined;
}

/** A link whose set-up is under way knows neither. */
type NewLink = Omit<Link, "version">;

/**
 * systemd as the manager of units. One connection, opened by the first who needs it and again after it was lost; every
 * call ends within its deadline, and none waits for another.
 */
export class SystemdManager {
  readonly #sockets: readonly SystemdSocket[];
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #reloadListeners = new Set<() => void>();
  #link: Promise<Link> | undefined;
  readonly #closing = new AbortController();

  constructor(sockets: readonly SystemdSocket[], ports: { readonly clock: Clock; readonly log: Logger }) {
    this.#sockets = sockets;
    this.#clock = ports.clock;
    this.#log = ports.log;
  }

  /** systemd's version, such as 252. */
  async version(): Promise<number> {
    return (await this.#linked()).version;
  }

  /** Starts a unit that has no file. One that systemd has already is started as it is: its properties are to be set. */
  async startTransient(unit: string, properties: readonly UnitProperty[]): Promise<"made" | "existed"> {
    try {
      const body = [unit, "replace", variants(properties), []];
      await this.#start(unit, { member: "StartTransientUnit", signature: "ssa(sv)a(sa(sv))", body });
      return "made";
    } catch (error) {
      if (!(error instanceof BusCallError && error.errorName === `${service}.UnitExists`)) throw error;
    }
    // Known to systemd is not yet active.
    await this.#start(unit, { member: "StartUnit", signature: "ss", body: [unit, "replace"] });
    return "existed";
  }

  /** Until the machine restarts. */
  async setProperties(unit: string, properties: readonly UnitProperty[]): Promise<void> {
    const body = [unit, true, variants(properties)];
    await this.#call({ member: "SetUnitProperties", signature: "sba(sv)", body });
  }

  /** Stops the unit, and with it every unit and process below; one that is not there is fine. */
  async stop(unit: string): Promise<void> {
    try {
      const result = await this.#job(`stop ${unit}`, { member: "StopUnit", signature: "ss", body: [unit, "replace"] });
      if (result === "done") return;
      this.#log.warn("systemd could not stop a unit", { unit, result });
      await this.#resetFailed(unit);
    } catch (error) {
      if (!(error instanceof BusCallError && error.errorName === `${service}.NoSuchUnit`)) throw error;
    }
  }

  /** Called when systemd has read its units anew, or may have while we were not connected. */
  onReload(listener: () => void): void {
    this.#reloadListeners.add(listener);
  }

  /** Connects if there is no connection, so that reloads are heard of. */
  async connect(): Promise<void> {
    await this.#linked();
  }

  /** Every call that is under way fails now, and every later one. */
  close(): void {
    this.#closing.abort(new BusLostError("the connection to systemd has been closed by us"));
  }

  async #start(unit: string, call: ManagerCall): Promise<void> {
    const result = await this.#job(`start ${unit}`, call);
    if (result === "done") return;
    await this.#resetFailed(unit);
    throw new Error(`systemd could not start ${unit}: the job's result is "${result}", wanted is "done"`);
  }

  async #resetFailed(unit: string): Promise<void> {
    try {
      await this.#call({ member: "ResetFailedUnit", signature: "s", body: [unit] });
    } catch (error) {
      if (!(error instanceof BusCallError)) throw error;
    }
  }

  async #job(what: string, call: ManagerCall): Promise<string> {
    const link = await this.#linked();
    return await link.jobs.run(what, () => this.#callOn(link, call, callTimeoutMs), link.lost);
  }

  async #call(call: ManagerCall): Promise<BusReply> {
    return await this.#callOn(await this.#linked(), call, callTimeoutMs);
  }

  async #callOn(link: NewLink, call: ManagerCall, timeoutMs: number): Promise<BusReply> {
    const reply = await link.connection.call(
      {
        ...(link.kind === "bus" ? { destination: service } : {}),
        path: managerPath,
        interface: managerInterface,
        ...call,
      },
      timeoutMs,
    );
    link.sender = reply.sender;
    return reply;
  }

  #linked(): Promise<Link> {
    if (this.#closing.signal.aborted) return Promise.reject(this.#closing.signal.reason);
    this.#link ??= this.#open();
    return this.#link;
  }

  async #open(): Promise<Link> {
    const failures: string[] = [];
    for (const socket of this.#sockets) {
      try {
        return await this.#openSocket(socket);
      } catch (error) {
        failures.push(messageOf(error));
      }
    }
    this.#link = undefined;
    throw new BusLostError(`Cannot talk to systemd: ${failures.join("; ")}`);
  }

  async #openSocket({ kind, path }: SystemdSocket): Promise<Link> {
    const connection = await BusConnection.open(path, this.#clock, this.#closing.signal);
    const lost = new Promise<never>((_, reject) => connection.onEnd(reject));
    // Mostly nobody waits for a job.
    lost.catch(() => undefined);
    const opening: NewLink = { kind, connection, jobs: new UnitJobs(this.#clock), lost, sender: undefined };
    try {
      connection.onSignal((signal) => this.#heed(opening, signal));
      if (kind === "bus") await this.#enterBus(connection);
      const version = await this.#readVersion(opening);
      // Without it reloads are not told; files are compared now and then all the same.
      await this.#subscribe(opening);
      const link = Object.assign(opening, { version });
      connection.onEnd(({ message }) => {
        this.#link = undefined;
        if (!this.#closing.signal.aborted)
          this.#log.warn("Lost the connection to systemd; it is opened again when needed", { why: message });
      });
      // Whatever happened while nobody listened.
      this.#tellReload();
      return link;
    } catch (error) {
      connection.close(messageOf(error));
      throw error;
    }
  }

  async #enterBus(connection: BusConnection): Promise<void> {
    const bus = { destination: busName, path: "/org/freedesktop/DBus", interface: busName };
    await connection.call({ ...bus, member: "Hello" }, setUpTimeoutMs);
    await mapAtMost(matches.length, matches, (match) =>
      connection.call({ ...bus, member: "AddMatch", signature: "s", body: [match] }, setUpTimeoutMs),
    );
  }

  async #readVersion(link: NewLink): Promise<number> {
    const { body } = await this.#callOn(
      link,
      {
        interface: "org.freedesktop.DBus.Properties",
        member: "Get",
        signature: "ss",
        body: [managerInterface, "Version"],
      },
      setUpTimeoutMs,
    );
    const text = (body[0] as BusVariant | undefined)?.value;
    return Number(/\d+/.exec(String(text))?.[0] ?? 0);
  }

  async #subscribe(link: NewLink): Promise<void> {
    try {
      await this.#callOn(link, { member: "Subscribe" }, setUpTimeoutMs);
    } catch (error) {
      if (!(error instanceof BusCallError)) throw error;
    }
  }

  /** Signals may come from anybody who is on the bus, so what they hold is read only when they are systemd's own. */
  #heed(link: NewLink, signal: ReceivedMessage): void {
    const isOwn = signal.interface === managerInterface && signal.sender === link.sender;
    if (isOwn && signal.member === "JobRemoved") link.jobs.removed(signal);
    else if (isOwn && signal.member === "Reloading" && signal.readBody()[0] === false) this.#tellReload();
    else if (signal.sender === busName && signal.member === "NameOwnerChanged") this.#heedOwner(link, signal);
  }

  /** systemd has been executed anew. */
  #heedOwner(link: NewLink, signal: ReceivedMessage): void {
    const [name, , owner] = signal.readBody();
    if (name !== service || typeof owner !== "string" || owner === "") return;
    link.sender = owner;
    this.#subscribe(link).catch(() => undefined);
    this.#tellReload();
  }

  #tellReload(): void {
    for (const listener of this.#reloadListeners) listener();
  }
}

interface ManagerCall {
  readonly member: string;
  readonly interface?: string;
  readonly signature?: string;
  readonly body?: readonly BusValue[];
}

function variants(properties: readonly UnitProperty[]): readonly BusValue[] {
  return properties.map(([name, value]) => [name, value]);
}
