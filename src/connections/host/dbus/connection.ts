import { closeSync } from "node:fs";
import { type Clock, messageOf, onAbort, type Timer } from "../../../ground/base/index.ts";
import { Authentication } from "./authentication.ts";
import { BusCallError, BusLostError } from "./errors.ts";
import { MessageStream } from "./message-stream.ts";
import { encodeMessage, type ReceivedMessage } from "./messages.ts";
import { type BusTransport, type OpenTransport, openSocket } from "./transport.ts";
import type { BusValue } from "./values.ts";

/** To be let in takes the bus a moment; one that takes longer than this is not to be waited for. */
const openTimeoutMs = 5_000;

/** Nobody asks for more than one at a time. */
const mostDescriptors = 16;

export interface BusCall {
  /** A name on the bus; a direct connection has nobody else to name. */
  readonly destination?: string;
  readonly path: string;
  readonly interface: string;
  readonly member: string;
  readonly signature?: string;
  readonly body?: readonly BusValue[];
}

export interface BusReply {
  readonly sender: string | undefined;
  readonly body: readonly BusValue[];
  /** That came along; whoever called owns them now. */
  readonly descriptors: readonly number[];
}

interface PendingCall {
  readonly member: string;
  readonly timer: Timer;
  readonly resolve: (reply: BusReply) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One connection to a D-Bus peer: calls with a deadline each, side by side, and signals. It ends at the first thing that
 * is not right (rubbish, silence, the peer's end); then every call fails, and whoever needs the bus opens another.
 */
export class BusConnection {
  readonly #transport: BusTransport;
  readonly #clock: Clock;
  readonly #pending = new Map<number, PendingCall>();
  readonly #signalListeners = new Set<(signal: ReceivedMessage) => void>();
  readonly #endListeners = new Set<(error: BusLostError) => void>();
  /** In the order they came; each belongs to the next message that says it has any. */
  readonly #descriptors: number[] = [];
  #lastSerial = 0;
  #ended: BusLostError | undefined;

  private constructor(transport: BusTransport, clock: Clock) {
    this.#transport = transport;
    this.#clock = clock;
  }

  /** Connects to a unix socket and authenticates. The connection ends with `signal` at the latest. */
  static async open(
    socketPath: string,
    clock: Clock,
    signal: AbortSignal,
    openTransport: OpenTransport = openSocket,
  ): Promise<BusConnection> {
    signal.throwIfAborted();
    const transport = openTransport(socketPath);
    const connection = new BusConnection(transport, clock);
    const ending = onAbort(signal, () => connection.close("no longer needed"));
    connection.onEnd(() => ending[Symbol.dispose]());
    let timer: Timer | undefined;
    try {
      await new Promise<void>((resolve, reject) => {
        timer = clock.after(openTimeoutMs, () => reject(new Error(`no answer within ${openTimeoutMs / 1000} s`)));
        connection.onEnd(reject);
        transport.opened.then(() => connection.#start(resolve)).catch(reject);
      });
      return connection;
    } catch (error) {
      connection.close(messageOf(error));
      throw new BusLostError(`Cannot connect to D-Bus at ${socketPath}: ${messageOf(error)}`, { cause: error });
    } finally {
      timer?.cancel();
    }
  }

  get isOpen(): boolean {
    return this.#ended === undefined;
  }

  /** Rejects with BusCallError when the peer answers so, with BusLostError when there is no answer. */
  call(call: BusCall, timeoutMs: number): Promise<BusReply> {
    const serial = this.#nextSerial();
    return new Promise<BusReply>((resolve, reject) => {
      if (this.#ended !== undefined) return reject(this.#ended);
      // First: what can't be written is the caller's failure, and nothing that others wait for.
      const message = encodeMessage({ ...call, type: "call", serial, body: call.body ?? [] });
      // Who keeps one call waiting that long is not trusted with the others either; they are made again.
      const timer = this.#clock.after(timeoutMs, () =>
        this.close(`${call.member} was not answered within ${timeoutMs / 1000} s`),
      );
      this.#pending.set(serial, { member: call.member, timer, resolve, reject });
      this.#transport.write(message);
    });
  }

  onSignal(listener: (signal: ReceivedMessage) => void): void {
    this.#signalListeners.add(listener);
  }

  onEnd(listener: (error: BusLostError) => void): void {
    if (this.#ended === undefined) this.#endListeners.add(listener);
    else listener(this.#ended);
  }

  close(why: string): void {
    if (this.#ended !== undefined) return;
    const error = new BusLostError(why);
    this.#ended = error;
    this.#transport.close();
    closeAll(this.#descriptors.splice(0));
    for (const { timer, reject } of this.#pending.values()) {
      timer.cancel();
      reject(error);
    }
    this.#pending.clear();
    for (const listener of this.#endListeners) listener(error);
    this.#endListeners.clear();
    this.#signalListeners.clear();
  }

  #start(onAuthenticated: () => void): void {
    const messages = new MessageStream();
    let isAuthenticated = false;
    const read = (bytes: Buffer): void => {
      for (const message of messages.take(bytes)) {
        if (!this.isOpen) return;
        this.#take(message);
      }
    };
    const authentication = new Authentication(this.#transport, (rest) => {
      isAuthenticated = true;
      onAuthenticated();
      read(rest);
    });
    this.#transport.listen({
      onBytes: (bytes, descriptors) => {
        this.#descriptors.push(...descriptors);
        try {
          if (this.#descriptors.length > mostDescriptors) throw new Error("more descriptors than anybody asked for");
          if (isAuthenticated) read(bytes);
          else authentication.take(bytes);
        } catch (error) {
          this.close(messageOf(error));
        }
      },
      onEnd: (error) => this.close(error.message),
    });
    authentication.begin();
  }

  #take(message: ReceivedMessage): void {
    // Before anything is taken out of the queue: what is no answer ends the connection, which closes the rest.
    const pending = message.type === "signal" ? undefined : this.#pending.get(message.replySerial ?? 0);
    const body = pending === undefined ? [] : message.readBody();
    const descriptors = this.#descriptors.splice(0, message.descriptors ?? 0);
    if (pending === undefined || message.type !== "return") closeAll(descriptors);
    if (message.type === "signal") {
      for (const listener of this.#signalListeners) listener(message);
      return;
    }
    // Calls of others to us, and answers to what we no longer wait for.
    if (message.type === "call" || pending === undefined) return;
    this.#pending.delete(message.replySerial ?? 0);
    pending.timer.cancel();
    if (message.type === "return") pending.resolve({ sender: message.sender, body, descriptors });
    else {
      const text = typeof body[0] === "string" ? body[0] : "";
      pending.reject(new BusCallError(pending.member, message.errorName ?? "an error without a name", text));
    }
  }

  /** Never 0, and never one that is still waited for. */
  #nextSerial(): number {
    do this.#lastSerial = this.#lastSerial >= 0xffff_ffff ? 1 : this.#lastSerial + 1;
    while (this.#pending.has(this.#lastSerial));
    return this.#lastSerial;
  }
}

function closeAll(descriptors: readonly number[]): void {
  for (const descriptor of descriptors) closeSync(descriptor);
}
