import assert from "node:assert/strict";
import { once, setMaxListeners } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { systemClock } from "../../src/ground/base/index.ts";
import { requestHeaders } from "../../src/pod/probes/http/headers.ts";
import { urlOf } from "../../src/pod/probes/http/url.ts";
import { outputLimitBytes } from "../../src/pod/probes/outcome.ts";
import { probeRunner } from "../../src/pod/probes/run-probe.ts";
import type { ProbeTarget } from "../../src/pod/probes/target.ts";
import { TestAuthority } from "../support/test-certificates.ts";
import { type FuzzRandom, fuzzTest, patienceMs } from "./fuzzing.ts";
import { LeakCheck } from "./leaks.ts";

const atOnce = 16;
const never = new AbortController().signal;
setMaxListeners(0, never);

fuzzTest("whatever a container answers to a probe, the probe ends with an outcome and leaves nothing", async (fuzz) => {
  const { random } = fuzz;
  const authority = new TestAuthority();
  const leaks = new LeakCheck();
  const answer = (socket: Socket): void => void answerOddly(socket, random);
  const plain = createServer(answer).listen(0, "127.0.0.1");
  const secure = createTlsServer({ ...authority.server(), ALPNProtocols: ["h2", "http/1.1"] }, answer);
  secure.on("tlsClientError", () => {});
  // The ends of the servers are ours to close; what is left then belongs to a probe.
  const accepted = new Set<Socket>();
  for (const server of [plain, secure]) {
    server.on("connection", (socket: Socket) => {
      accepted.add(socket);
      socket.on("error", () => {}).on("close", () => accepted.delete(socket));
    });
  }
  secure.listen(0, "127.0.0.1");
  await Promise.all([once(plain, "listening"), once(secure, "listening")]);
  const ports = { plain: portOf(plain), secure: portOf(secure) };
  const run = probeRunner(() => Promise.reject(new Error("no command here")), systemClock, {
    concurrency: 2,
    runtimeTimeoutMs: 1_000,
  });
  const prober = async (): Promise<void> => {
    while (fuzz.goesOn()) {
      const outcome = await run(oddTarget(random, ports), random.pick([50, 500]), never);
      const text = outcome.type === "error" ? outcome.message : outcome.type === "success" ? "" : outcome.output;
      assert.ok(text.length <= outputLimitBytes + 100, `${text.length} characters of output`);
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, prober));
  } finally {
    // First no new ones: whom a busy machine lets in late would be left open.
    plain.close();
    secure.close();
    for (const socket of accepted) socket.destroy();
    authority.remove();
  }
  await leaks.check(patienceMs);
});

function portOf(server: { address(): unknown }): number {
  return (server.address() as AddressInfo).port;
}

function oddTarget(random: FuzzRandom, ports: { readonly plain: number; readonly secure: number }): ProbeTarget {
  const type = random.pick(["http", "https", "http", "https", "tcp", "grpc"] as const);
  // Plain words to a server that wants TLS, and the other way round, happen too.
  const port = (type === "https") !== random.chance(0.1) ? ports.secure : ports.plain;
  if (type === "tcp") return { type, host: "127.0.0.1", port };
  if (type === "grpc") return { type, host: "127.0.0.1", port, service: random.text(30) };
  const names = ["X-A", "Authorization", "Host", "Content-Length", "Connection", "Accept-Encoding"];
  const headers = Array.from({ length: random.below(4) }, () => ({
    name: random.pick(names),
    value: random.text(20, "ab ,="),
  }));
  const url = urlOf(type, "127.0.0.1", port, random.text(40));
  return { type: "http", url, headers: requestHeaders(headers, "fuzz/1") };
}

const heads = [
  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
  "HTTP/1.1 200 OK\r\nContent-Length: 500000000\r\n\r\n",
  "HTTP/1.1 500 Odd\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
  "HTTP/1.1 100 Continue\r\n\r\n",
  "HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
  "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
  `HTTP/1.1 302 Found\r\nLocation: ${"/a".repeat(3_000)}\r\n\r\n`,
  "HTTP/1.1 99999 Odd\r\n\r\n",
  "HTTP/9.9 200 OK\r\n\r\n",
  "SSH-2.0-odd\r\n",
  "\r\n\r\n\r\n",
  `HTTP/1.1 200 OK\r\n${"X: y\r\n".repeat(5_000)}\r\n`,
  // Frames of HTTP/2: settings, going away, a head that is none, a window of no size, data nobody asked for.
  "\0\0\0\x04\0\0\0\0\0",
  "\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x02",
  "\0\0\x05\x01\x05\0\0\0\x01\xff\xff\xff\xff\xff",
  "\0\0\x04\x08\0\0\0\0\x01\0\0\0\0",
  "\0\0\x01\x01\x05\0\0\0\x01\x88",
  "\0\x40\0\0\0\0\0\0\x01",
  "\xff\xff\xff\0\0\0\0\0\x01",
];

async function answerOddly(socket: Socket, random: FuzzRandom): Promise<void> {
  socket.on("error", () => {});
  if (random.chance(0.5)) socket.resume();
  for (let part = random.below(6); part > 0 && !socket.destroyed; part--) {
    const bytes = random.chance(0.7)
      ? Buffer.from(random.pick(heads), "latin1")
      : random.chance(0.2)
        ? Buffer.alloc(1_000_000, 97)
        : random.bytes(random.below(500));
    socket.write(bytes);
    if (random.chance(0.3)) await systemClock.sleep(random.below(30), never);
  }
  const ending = random.below(4);
  if (ending === 0) socket.end();
  else if (ending === 1) socket.resetAndDestroy();
  else {
    // Left open: the probe's own limit has to end it.
    await systemClock.sleep(1_500, never);
    socket.destroy();
  }
}
