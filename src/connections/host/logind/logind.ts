import { closeSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, messageOf, saveFile } from "../../../ground/base/index.ts";
import {
  BusCallError,
  BusConnection,
  type BusReply,
  type BusValue,
  type BusVariant,
  type ReceivedMessage,
} from "../dbus/index.ts";
import { descriptorTransport } from "./descriptor-transport.ts";

const service = "org.freedesktop.login1";
const path = "/org/freedesktop/login1";
const manager = `${service}.Manager`;
const bus = "org.freedesktop.DBus";
const systemd = "org.freedesktop.systemd1";

const matches = [
  `type='signal',sender='${service}',path='${path}',interface='${manager}',member='PrepareForShutdown'`,
  `type='signal',sender='${bus}',interface='${bus}',member='NameOwnerChanged',arg0='${service}'`,
];

const callTimeoutMs = 10_000;
const hangUp = 1;
/** The same file as the kubelet's, so that the one that takes over the node finds it. */
const dropInName = "99-kubelet.conf";

export interface LogindPlace {
  /** The system bus. */
  readonly socketPath: string;
  /** Where logind looks for settings. */
  readonly dropInDirectory: string;
}

/** systemd-logind, which asks those who hold a lock before it turns the machine off. One connection, not opened again. */
export class Logind {
  readonly #place: LogindPlace;
  readonly #clock: Clock;
  readonly #connection: BusConnection;
  readonly #signal: AbortSignal;
  readonly #prepareListeners = new Set<(begins: boolean) => void>();
  readonly #ownerListeners = new Set<() => void>();
  /** Who logind is on the bus; nobody else is believed. */
  #owner: string | undefined;

  private constructor(place: LogindPlace, clock: Clock, connection: BusConnection, signal: AbortSignal) {
    this.#place = place;
    this.#clock = clock;
    this.#connection = connection;
    this.#signal = signal;
  }

  /** Rejects when there is no bus, or no logind on it. */
  static async open(place: LogindPlace, clock: Clock, signal: AbortSignal): Promise<Logind> {
    const connection = await BusConnection.open(place.socketPath, clock, signal);
    try {
      const logind = new Logind(place, clock, connection, signal);
      connection.onSignal((message) => {
        if (message.sender === bus && message.member === "NameOwnerChanged") logind.#ownerChanged(message.readBody());
        else if (message.sender === logind.#owner && message.interface === manager) logind.#told(message);
      });
      await logind.#ask(connection, { member: "Hello" });
      for (const match of matches) await logind.#ask(connection, { member: "AddMatch", signature: "s", body: [match] });
      await logind.maxDelayMs();
      return logind;
    } catch (error) {
      connection.close(messageOf(error));
      throw error;
    }
  }

  /** For how long a lock may hold up a shutdown. */
  async maxDelayMs(): Promise<number> {
    const value = await this.#property("InhibitDelayMaxUSec");
    if (typeof value !== "bigint") throw new Error("logind's InhibitDelayMaxUSec is not a number");
    return Number(value / 1000n);
  }

  /** A shutdown is being held up right now. */
  async isPreparing(): Promise<boolean> {
    return (await this.#property("PreparingForShutdown")) === true;
  }

  /** Writes a setting of logind that lasts, and has logind read it. It need not have when this resolves. */
  async raiseMaxDelay(seconds: number): Promise<void> {
    const { dropInDirectory } = this.#place;
    await mkdir(dropInDirectory, { recursive: true, mode: 0o755 });
    const text = `# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=${seconds}\n`;
    await saveFile(join(dropInDirectory, dropInName), text, 0o644);
    await this.#connection.call(
      {
        destination: systemd,
        path: "/org/freedesktop/systemd1",
        interface: `${systemd}.Manager`,
        member: "KillUnit",
        signature: "ssi",
        body: ["systemd-logind.service", "all", hangUp],
      },
      callTimeoutMs,
    );
  }

  /**
   * A lock that holds up every shutdown until it is disposed of, or this process ends, or logind's patience does.
   * Undefined: a shutdown is under way already, and cannot be held up any more.
   */
  async inhibit(): Promise<Disposable | undefined> {
    // Through a connection of its own: the one that is kept can't receive descriptors.
    const { socketPath } = this.#place;
    const transport = descriptorTransport(this.#clock);
    const connection = await BusConnection.open(socketPath, this.#clock, this.#signal, transport);
    try {
      await this.#ask(connection, { member: "Hello" });
      const body = ["shutdown", "kubelet", "Kubelet needs time to handle node shutdown", "delay"];
      const inhibit = { ...toLogind, member: "Inhibit", signature: "ssss", body };
      const { descriptors } = await connection.call(inhibit, callTimeoutMs);
      const [lock, ...more] = descriptors;
      for (const descriptor of more) closeSync(descriptor);
      if (lock === undefined) throw new Error("logind answered without a lock");
      return lockOf(lock);
    } catch (error) {
      if (error instanceof BusCallError && error.errorName === `${service}.OperationInProgress`) return undefined;
      throw error;
    } finally {
      connection.close("the lock is taken");
    }
  }

  /** The machine is about to be turned off (true), or is not after all (false). */
  onPrepareForShutdown(listener: (begins: boolean) => void): void {
    this.#prepareListeners.add(listener);
  }

  /** logind was started anew; it may have forgotten what it was asked. */
  onRestart(listener: () => void): void {
    this.#ownerListeners.add(listener);
  }

  onEnd(listener: (error: Error) => void): void {
    this.#connection.onEnd(listener);
  }

  close(): void {
    this.#connection.close("no longer needed");
  }

  #told({ member, readBody }: ReceivedMessage): void {
    if (member !== "PrepareForShutdown") return;
    const [begins] = readBody();
    if (typeof begins === "boolean") for (const listener of this.#prepareListeners) listener(begins);
  }

  #ownerChanged([name, , owner]: readonly BusValue[]): void {
    if (name !== service || typeof owner !== "string" || owner === "") return;
    this.#owner = owner;
    for (const listener of this.#ownerListeners) listener();
  }

  async #property(name: string): Promise<BusValue | undefined> {
    const body = [manager, name];
    const call = { ...toLogind, interface: `${bus}.Properties`, member: "Get", signature: "ss", body };
    const reply = await this.#connection.call(call, callTimeoutMs);
    this.#owner = reply.sender;
    return (reply.body[0] as BusVariant | undefined)?.value;
  }

  #ask(
    connection: BusConnection,
    call: { readonly member: string; readonly signature?: string; readonly body?: readonly BusValue[] },
  ): Promise<BusReply> {
    const toBus = { destination: bus, path: "/org/freedesktop/DBus", interface: bus };
    return connection.call({ ...toBus, ...call }, callTimeoutMs);
  }
}

const toLogind = { destination: service, path, interface: manager };

function lockOf(descriptor: number): Disposable {
  let isHeld = true;
  return {
    [Symbol.dispose]() {
      if (isHeld) closeSync(descriptor);
      isHeld = false;
    },
  };
}
