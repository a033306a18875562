import { EventEmitter, once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { CertificateAuthority } from "../../src/beside/localapi/auth/certificates.ts";

/** What a kubelet was asked, and by whom. */
export interface KubeletRequest {
  readonly method: string;
  readonly url: string;
  readonly user: string;
  readonly authorization: string | undefined;
}

const used = (usageNanoCores: number, workingSetBytes: number): object => ({
  cpu: { time: "2026-01-01T00:00:00Z", usageNanoCores },
  memory: { time: "2026-01-01T00:00:00Z", workingSetBytes },
});
const summary = {
  node: { nodeName: "n1", ...used(250_000_000, 512 * 1024 * 1024) },
  pods: [
    {
      podRef: { namespace: "default", name: "web" },
      containers: [{ name: "main", ...used(5_000_000, 3 * 1024 * 1024) }],
    },
    { podRef: { namespace: "default", name: "unknown" }, containers: [{ name: "main", ...used(1, 1) }] },
    { podRef: { namespace: "default", name: "fresh" }, containers: [{ name: "main", cpu: {}, memory: {} }] },
  ],
};

/** A kubelet's HTTPS server for tests: tells canned logs, echoes streams, repeats requests. */
export class FakeKubelet implements AsyncDisposable {
  readonly requests: readonly KubeletRequest[];
  readonly port: number;
  readonly #server: Server;
  readonly #sockets: Set<TLSSocket>;
  readonly #arrivals: EventEmitter;

  private constructor(server: Server, requests: KubeletRequest[], sockets: Set<TLSSocket>, arrivals: EventEmitter) {
    this.#arrivals = arrivals;
    this.#server = server;
    this.requests = requests;
    this.#sockets = sockets;
    this.port = (server.address() as AddressInfo).port;
  }

  static async start(clientCaPem: string): Promise<FakeKubelet> {
    const authority = await CertificateAuthority.create("kubelet-ca");
    const { certPem, keyPem } = await authority.issueServer({ commonName: "kubelet" }, ["127.0.0.1"]);
    const server = createServer({
      cert: certPem,
      key: keyPem,
      ca: clientCaPem,
      requestCert: true,
      rejectUnauthorized: true,
    });
    const requests: KubeletRequest[] = [];
    const sockets = new Set<TLSSocket>();
    const arrivals = new EventEmitter();
    server.on("secureConnection", (socket) => {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    });
    const note = (request: IncomingMessage): void => {
      const { subject } = (request.socket as TLSSocket).getPeerCertificate();
      const { method = "", url = "", headers } = request;
      requests.push({ method, url, user: `${subject.O}/${subject.CN}`, authorization: headers.authorization });
      arrivals.emit("request");
    };
    server.on("request", (request, response) => {
      note(request);
      if (request.url?.startsWith("/containerLogs/default/web/main") === true) response.end("line 1\nline 2\n");
      else if (request.url?.startsWith("/containerLogs/") === true) {
        response.writeHead(400).end('container "main" in pod "waiting" is waiting to start: ContainerCreating');
      } else if (request.url === "/stats/summary") response.end(JSON.stringify(summary));
      else request.pipe(response);
    });
    server.on("upgrade", (request, socket, head) => {
      note(request);
      const protocol = request.headers["x-stream-protocol-version"] ?? "";
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: ${protocol}\r\n\r\n`,
      );
      if (head.length > 0) socket.write(head);
      socket.pipe(socket);
      socket.on("error", () => socket.destroy());
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new FakeKubelet(server, requests, sockets, arrivals);
  }

  /** The first request that begins so, such as "POST /exec/"; waits for it. */
  async arrival(start: string): Promise<KubeletRequest> {
    for (;;) {
      const found = this.requests.find(({ method, url }) => `${method} ${url}`.startsWith(start));
      if (found !== undefined) return found;
      await once(this.#arrivals, "request");
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}
