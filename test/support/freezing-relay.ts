import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

/** Passes connections on to a port of this machine, and can leave those it has as dead as a sleeping laptop does. */
export class FreezingRelay implements AsyncDisposable {
  readonly #server;
  readonly #passing = new Set<Socket>();
  readonly #all = new Set<Socket>();

  private constructor(to: number) {
    this.#server = createServer((near) => {
      const far = connect(to, "127.0.0.1");
      for (const socket of [near, far]) {
        this.#passing.add(socket);
        this.#all.add(socket);
        socket.on("error", () => {});
        socket.on("close", () => {
          this.#all.delete(socket);
          if (!this.#passing.delete(socket)) return;
          near.destroy();
          far.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
  }

  static async start(to: number): Promise<FreezingRelay> {
    const relay = new FreezingRelay(to);
    relay.#server.listen(0, "127.0.0.1");
    await once(relay.#server, "listening");
    return relay;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections that are there stay open and pass nothing on, not even their end; later ones work. */
  freeze(): void {
    for (const socket of this.#passing) {
      socket.unpipe();
      socket.pause();
    }
    this.#passing.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#all) socket.destroy();
    this.#server.close();
  }
}
