import { once } from "node:events";
import { createServer, connect as dial, type Server, type Socket } from "node:net";
import { freePort } from "./free-port.ts";

/** Stands between a client and a server, and can cut or hold back everything, as a failing network does. */
export class Outage implements AsyncDisposable {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  private constructor(target: { readonly host: string; readonly port: number }, port: number) {
    this.#target = target;
    this.#port = port;
  }

  static async before(url: string): Promise<Outage> {
    const { hostname, port } = new URL(url);
    const outage = new Outage({ host: hostname, port: Number(port) }, await freePort());
    await outage.end();
    return outage;
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  /** From now on the server can't be reached, and what was connected is cut off. */
  async begin(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    server?.close();
    for (const socket of this.#sockets) socket.destroy();
    if (server?.listening) await once(server, "close");
  }

  async end(): Promise<void> {
    const server = createServer((client) => {
      const upstream = dial(this.#target);
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket
          .on("error", () => {})
          .on("close", () => {
            this.#sockets.delete(socket);
            client.destroy();
            upstream.destroy();
          });
      }
      client.pipe(upstream).pipe(client);
    });
    server.listen(this.#port, "127.0.0.1");
    await once(server, "listening");
    this.#server = server;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.begin();
  }
}
