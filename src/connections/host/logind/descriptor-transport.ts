import { type Clock, messageOf, type Timer } from "../../../ground/base/index.ts";
import type { OpenTransport, TransportListener } from "../dbus/index.ts";
import { connectStream, type StreamSocket } from "../stream-socket.ts";

/** Node can't say when such a socket has something to read; an answer of the bus takes a few milliseconds. */
const lookEveryMs = 5;

/**
 * A way to the bus on which descriptors arrive. It looks for news again and again, so it is for one question, not for
 * a connection that is kept.
 */
export function descriptorTransport(clock: Clock): OpenTransport {
  return (path) => {
    const way = new DescriptorTransport(clock);
    return Object.assign(way, { opened: way.connect(path) });
  };
}

class DescriptorTransport {
  readonly takesDescriptors = true;
  readonly #clock: Clock;
  #socket: StreamSocket | undefined;
  #unsent: Buffer = Buffer.alloc(0);
  #listener: TransportListener | undefined;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async connect(path: string): Promise<void> {
    const socket = await connectStream(path.startsWith("\0") ? `@${path.slice(1)}` : path);
    if (this.#isClosed) socket.close();
    else this.#socket = socket;
  }

  write(bytes: Buffer): void {
    this.#unsent = Buffer.concat([this.#unsent, bytes]);
    this.#look();
  }

  listen(listener: TransportListener): void {
    this.#listener = listener;
    this.#look();
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#socket?.close();
  }

  #look(): void {
    this.#timer?.cancel();
    if (this.#isClosed) return;
    // Later, so that whoever writes in answer to what it has just read is not called again from within.
    this.#timer = this.#clock.after(lookEveryMs, () => {
      this.#exchange();
      this.#look();
    });
  }

  #exchange(): void {
    try {
      if (this.#unsent.length > 0) this.#unsent = this.#unsent.subarray(this.#socket?.send(this.#unsent) ?? 0);
      for (let received = this.#receive(); received !== undefined; received = this.#receive()) {
        if (received.bytes.length === 0) throw new Error("the bus has closed the connection");
        this.#listener?.onBytes(received.bytes, received.descriptors);
      }
    } catch (error) {
      this.#listener?.onEnd(new Error(messageOf(error)));
    }
  }

  #receive() {
    return this.#isClosed ? undefined : this.#socket?.receive();
  }
}
