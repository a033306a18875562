// A process of its own that answers probes and hooks as badly as it can; prints its ports as one line of JSON.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { createSecureServer, type Http2Server, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createRawServer, type Server, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { TestAuthority } from "../../test/support/test-certificates.ts";

export interface BadPorts {
  /** HTTP/1: /endless, /headers, /silent, /redirect; anything else is answered well. */
  readonly http: number;
  /** HTTP/2 over TLS: the same, and /informational, /pushes. */
  readonly http2: number;
  /** No protocol: a byte now and then, without end. */
  readonly drip: number;
}

export interface BadServer extends AsyncDisposable {
  readonly ports: BadPorts;
}

export async function startBadServer(): Promise<BadServer> {
  const child: ChildProcess = spawn(process.execPath, ["--import", "tsx", fileURLToPath(import.meta.url)], {
    env: { ...process.env, NODE_OPTIONS: "", NODELET_BAD_SERVER: "1" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  if (child.stdout === null) throw new Error("the bad server has no output");
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    ports: JSON.parse(line) as BadPorts,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
    },
  };
}

if (process.env["NODELET_BAD_SERVER"] === "1") await serve();

async function serve(): Promise<void> {
  const authority = new TestAuthority();
  const { certificate, key } = authority.server();
  authority.remove();
  const http = createServer((request, response) => answer(request.url ?? "", response));
  const settings = { cert: certificate, key, allowHTTP1: false, maxSendHeaderBlockLength: 2 ** 30 };
  const http2 = createSecureServer(settings);
  http2.on("stream", (stream, headers) => answerHttp2(headers[":path"] ?? "", stream));
  for (const event of ["error", "sessionError", "tlsClientError"]) http2.on(event, () => {});
  const drip = createRawServer((socket) => dripInto(socket));
  const ports = { http: await portOf(http), http2: await portOf(http2), drip: await portOf(drip) };
  console.log(JSON.stringify(ports));
  // Whoever started it is gone.
  process.stdin.on("end", () => process.exit(0)).resume();
}

async function portOf(server: Server | Http2Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

function answer(path: string, response: ServerResponse): void {
  response.on("error", () => {});
  if (path === "/endless") pour(response);
  else if (path === "/headers") {
    for (let index = 0; index < 100; index++) response.setHeader(`x-${index}`, "h".repeat(10_000));
    response.end("ok");
  } else if (path === "/redirect") response.writeHead(302, { location: `/redirect${"x".repeat(15_000)}` }).end();
  else if (path.startsWith("/redirect")) response.writeHead(302, { location: "/redirect" }).end();
  else if (path !== "/silent") response.end("ok");
}

function answerHttp2(path: string, stream: ServerHttp2Stream): void {
  stream.on("error", () => {});
  const cookies = Array.from({ length: 2_000 }, (_, index) => `${index}=${"c".repeat(400)}`);
  try {
    if (path === "/endless") {
      stream.respond({ ":status": 200 });
      pour(stream);
    } else if (path === "/headers") {
      stream.respond({ ":status": 200, "set-cookie": cookies, "x-many": cookies });
      stream.end("ok");
    } else if (path === "/informational") {
      for (let index = 0; index < 5_000; index++) stream.additionalHeaders({ ":status": 103, link: "l".repeat(500) });
    } else if (path === "/pushes") {
      for (let index = 0; index < 500; index++) {
        stream.pushStream({ ":path": `/${index}` }, (error, pushed) => {
          pushed?.on("error", () => {});
          if (error === null) pushed.respond({ ":status": 200 });
        });
      }
    } else if (path === "/redirect") {
      stream.respond({ ":status": 302, location: "/redirect", "set-cookie": cookies });
      stream.end();
    } else if (path !== "/silent") {
      stream.respond({ ":status": 200 });
      stream.end("ok");
    }
  } catch {
    stream.destroy();
  }
}

/** As much as the client takes, without end. */
function pour(stream: Writable): void {
  const chunk = Buffer.alloc(64 * 1024, "x");
  const more = (): void => {
    while (!stream.destroyed && stream.write(chunk));
  };
  stream.on("drain", more);
  more();
}

function dripInto(socket: Socket): void {
  const timer = setInterval(() => socket.write("H"), 5);
  socket.on("error", () => {}).on("close", () => clearInterval(timer));
}
