import assert from "node:assert/strict";
import { once, setMaxListeners } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { FakeRuntime } from "../../src/beside/hollow/index.ts";
import { ContainerStatusResponse } from "../../src/connections/cri/index.ts";
import { silentLogger, systemClock } from "../../src/ground/base/index.ts";
import type { ObservedPod, Pod } from "../../src/ground/model/index.ts";
import { logQuery } from "../../src/node/server/api/log-query.ts";
import { nodeApiMounts } from "../../src/node/server/api/node-api.ts";
import type { ApiMount } from "../../src/node/server/api/router.ts";
import { systemLogsService } from "../../src/node/server/api/system-logs.ts";
import { containerLogsService } from "../../src/node/server/logs/container-logs.ts";
import { MetricRegistries } from "../../src/node/server/metric-registries.ts";
import { figureMounts } from "../../src/node/server/serve-node-api.ts";
import { eventually } from "../support/agent.ts";
import { ContainerLogWriter } from "../support/log-writer.ts";
import { allOn, apiPorts, FakeViews, noStatistics, TestServer } from "../support/node-api.ts";
import { TestAuthority } from "../support/test-certificates.ts";
import { type FuzzRandom, fuzzTest, patienceMs } from "./fuzzing.ts";
import { describeDescriptors, openDescriptors } from "./leaks.ts";

const never = new AbortController().signal;
setMaxListeners(0, never);
const clients = 16;

const pod: Pod = {
  metadata: { name: "web", namespace: "shop", uid: "u" },
  spec: { containers: [{ name: "main" }, { name: "term", tty: true }] },
  status: {
    containerStatuses: [
      {
        ...{ name: "main", image: "i", imageID: "i", ready: true, restartCount: 0, containerID: "containerd://now" },
        state: { running: { startedAt: "2026-01-01T00:00:00Z" } },
      },
    ],
  },
};

const paths = [
  ...["/healthz", "/healthz?verbose", "/pods", "/runningpods/", "/configz", "/metrics", "/metrics/slis", "/nothing"],
  ...["/metrics/cadvisor", "/metrics/resource", "/stats/summary", "/stats/summary?only_cpu_and_memory=true"],
  ...["/logs/", "/logs/big", "/logs/sub", "/logs/sub/", "/logs/out", "/logs/none", "/logs/caf%E9", "/logs/%ff%fe/x"],
  ...["/logs/?query=/big", "/logs/?query=service", "/logs/?query=sub", "/logs/?query=service&query=sub&tailLines=3"],
  ...["/containerLogs/shop/web/main", "/containerLogs/shop/web/main?follow=true", "/containerLogs/shop/web/none"],
  ...["/containerLogs/shop/web/main?tailLines=3&follow=true", "/containerLogs/shop/web/main?limitBytes=9"],
  ...["/exec/shop/web/main?command=sh&output=1", "/exec/shop/web/main", "/attach/shop/web/term?input=1&output=1"],
  ...["/portForward/shop/web", "/portForward/shop/web?port=80", "/portForward/shop/web?port=x", "/exec/a/b/c?output=1"],
  ...["/run/shop/web/main?cmd=date", "/debug/flags/v", "/debug/pprof/cmdline", "/debug/pprof/profile?seconds=0.05"],
  ...["/checkpoint/shop/web/main", "/flagz", "/statusz", "/", "*", "//", "/../..", "/%2e%2e/%2e%2e/etc/passwd", "/%"],
];

/** Requests of any kind, whole, broken, cut and given up, to a server of the real paths and a runtime that errs. */
fuzzTest("the node's API outlives whatever its clients do", async (fuzz) => {
  const directory = mkdtempSync(join(tmpdir(), "nodelet-fuzz-api-"));
  const authority = new TestAuthority();
  const streaming = await startStreaming(fuzz.random);
  const writer = new ContainerLogWriter(join(directory, "containers", "0.log"));
  const views = new FakeViews(pod);
  try {
    const mounts = mountsOf(directory, views, writer, streaming.url);
    const pair = authority.server();
    const tls = { cert: pair.certificate, key: pair.key, ca: authority.certificate };
    await using plain = await TestServer.start(mounts);
    await using secure = await TestServer.start(mounts, {}, tls);
    // Warm up, so that what is loaded once is not taken for a leak.
    for (const path of paths.slice(0, 12)) await plain.ask(path);
    await secure.ask("/healthz");
    const before = openDescriptors();
    let requests = 0;
    const client = async (): Promise<void> => {
      while (fuzz.goesOn()) {
        const place = fuzz.random.chance(0.4) ? { port: secure.port, tls: true } : { port: plain.port, tls: false };
        await visit(place, fuzz.random);
        requests++;
        if (fuzz.random.chance(0.05)) writer.say(Buffer.from(fuzz.random.text(200)));
        if (fuzz.random.chance(0.002))
          secure.server.renewTls({ ...tls, ca: fuzz.random.chance(0.5) ? tls.ca : tls.cert });
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    await clean("no follower is left", () => views.listeners === 0);
    await clean("the runtime's streams are closed", () => streaming.sockets.size === 0);
    await clean("every connection and file is closed", () => openDescriptors() <= before + 2);
    assert.equal((await plain.ask("/healthz")).status, 200);
    assert.equal((await secure.ask("/healthz")).status, 200);
    assert.ok(requests > clients, `${requests} requests`);
  } finally {
    await streaming[Symbol.asyncDispose]();
    authority.remove();
    rmSync(directory, { recursive: true });
  }
});

async function clean(what: string, isSo: () => boolean): Promise<void> {
  try {
    await eventually(async () => isSo(), what, patienceMs);
  } catch (error) {
    throw new Error(`open are ${describeDescriptors()}`, { cause: error });
  }
}

function mountsOf(directory: string, views: FakeViews, writer: ContainerLogWriter, url: string): readonly ApiMount[] {
  const root = join(directory, "log");
  mkdirSync(join(root, "sub"), { recursive: true });
  writeFileSync(join(root, "big"), Buffer.alloc(3_000_000, "0123456789\n"));
  writeFileSync(Buffer.concat([Buffer.from(`${root}/caf`), Buffer.from([0xe9])]), "x");
  symlinkSync("/etc/passwd", join(root, "out"));
  const journalctl = join(directory, "journalctl");
  writeFileSync(journalctl, '#!/bin/sh\n[ "$1" = --field ] && echo service.service && exit\nseq 20000\n');
  chmodSync(journalctl, 0o755);
  for (let line = 0; line < 500; line++) writer.say(Buffer.from(`line ${line}`));
  const fake = new FakeRuntime({ clock: systemClock }).runtime;
  const containers = ["main", "term"].map((name) => ({ name, id: name, state: "running", logPath: writer.path }));
  const observed = { containers, sandboxes: [{ id: "s", state: "ready" }] } as unknown as ObservedPod;
  const stream = async () => ({ url });
  const runtime = {
    ...fake,
    exec: stream,
    attach: stream,
    portForward: stream,
    execSync: async () => ({ exitCode: 0, stdout: Buffer.alloc(100_000, "x"), stderr: Buffer.from("y") }),
    containerStatus: async () => ContainerStatusResponse.fromPartial({ status: { logPath: writer.path } }),
  };
  const runtimeViews = { latest: () => observed, look: async () => observed };
  const logs = { views, runtimeViews, runtime, clock: systemClock, splitStreams: true };
  const figures = figureMounts({ figures: new MetricRegistries(), statistics: noStatistics, log: silentLogger });
  const settings = { ...allOn, enableSystemLogHandler: false, flagz: true, statusz: true };
  const ports = apiPorts({ runtime, views, runtimeViews, figures, containerLogs: containerLogsService(logs) });
  const query = logQuery({ clock: systemClock, root, journalctl });
  return [systemLogsService(root, query), ...nodeApiMounts(settings, ports)];
}

interface Streaming extends AsyncDisposable {
  readonly url: string;
  readonly sockets: ReadonlySet<Socket>;
}

/** A runtime's streaming server that does anything but what it should, now and then. */
async function startStreaming(random: FuzzRandom): Promise<Streaming> {
  const sockets = new Set<Socket>();
  const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    // Whoever it is must not be left waiting by this stand-in itself.
    const last = systemClock.after(2_000, () => socket.destroy());
    socket.on("close", () => last.cancel());
    socket.once("data", () => {
      const answers: readonly (() => void)[] = [
        () => void socket.write(switching),
        () => {
          socket.write(switching);
          socket.pipe(socket);
        },
        () => void socket.end(`${switching}some words`),
        () => void socket.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"),
        () => void socket.end("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"),
        () => void socket.write(random.bytes(random.below(300))),
        () => void socket.write("HTTP/1.1 101 Sw"),
        () => void socket.write(`HTTP/1.1 200 OK\r\nX: ${"x".repeat(70_000)}`),
        () => void socket.destroy(),
        () => void socket.resetAndDestroy(),
        () => void socket.end(),
      ];
      random.pick(answers)();
      socket.resume();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/stream`,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** One connection: some bytes in some pieces, some patience, and one of the ways to leave. */
async function visit(
  { port, tls }: { readonly port: number; readonly tls: boolean },
  random: FuzzRandom,
): Promise<void> {
  const raw = connect({ host: "127.0.0.1", port, noDelay: true, allowHalfOpen: true });
  raw.on("error", () => {});
  const socket = tls && random.chance(0.95) ? connectTls({ socket: raw, rejectUnauthorized: false }) : raw;
  let received = 0;
  const enough = random.chance(0.5) ? Number.POSITIVE_INFINITY : random.below(200_000);
  socket.on("error", () => {});
  const closed = new Promise<void>((resolve) => raw.once("close", () => resolve()));
  const pause = (ms: number): Promise<unknown> => Promise.race([closed, systemClock.sleep(ms, never)]);
  if (random.chance(0.85)) {
    socket.on("data", (chunk: Buffer) => {
      received += chunk.length;
      // A reader that has stopped reading, without having left.
      if (received > enough) socket.pause();
    });
  }
  const requests = 1 + (random.chance(0.2) ? random.below(4) : 0);
  for (let count = 0; count < requests && !raw.destroyed; count++) {
    const bytes = requestBytes(random);
    const cut = random.chance(0.2) ? random.below(bytes.length) : bytes.length;
    for (let at = 0; at < cut; ) {
      const length = random.chance(0.7) ? cut - at : 1 + random.below(cut - at);
      if (socket.writable) socket.write(bytes.subarray(at, at + length));
      at += length;
      if (random.chance(0.3)) await pause(random.below(4));
    }
    if (random.chance(0.7)) await pause(random.below(random.chance(0.05) ? 300 : 15));
  }
  const ways: readonly (() => void)[] = [
    () => void raw.destroy(),
    () => void raw.resetAndDestroy(),
    () => void socket.destroy(),
    () => void socket.end(),
    () => void raw.end(),
    () => {
      if (socket.writable) socket.end(random.bytes(random.below(100)));
    },
  ];
  random.pick(ways)();
  await pause(random.below(30));
  raw.destroy();
  await closed;
}

function requestBytes(random: FuzzRandom): Buffer {
  if (random.chance(0.03)) return random.bytes(random.below(600));
  const method = random.pick([
    "GET",
    "GET",
    "GET",
    "GET",
    "POST",
    "PUT",
    "HEAD",
    "DELETE",
    "OPTIONS",
    "CONNECT",
    "BREW",
  ]);
  const path = random.chance(0.9)
    ? random.pick(paths)
    : `/${encodeURI(random.text(60, "abc/.%?&=;01\u00e9")).slice(0, 200)}`;
  const lines = [`${method} ${path} HTTP/${random.chance(0.95) ? "1.1" : random.pick(["1.0", "2.0", "0.9", "x"])}`];
  if (random.chance(0.97)) lines.push("Host: node");
  if (random.chance(0.35)) {
    lines.push(`Upgrade: ${random.pick(["websocket", "SPDY/3.1", "h2c", "x"])}`, "Connection: Upgrade");
    if (random.chance(0.5)) lines.push("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13");
  } else if (random.chance(0.3)) lines.push(`Connection: ${random.pick(["close", "keep-alive", "x"])}`);
  if (random.chance(0.2)) lines.push(`Accept-Encoding: ${random.pick(["gzip", "br", "*"])}`);
  if (random.chance(0.1)) lines.push(`Range: bytes=${random.below(9)}-${random.chance(0.5) ? random.below(99) : ""}`);
  if (random.chance(0.05)) lines.push(`Authorization: Bearer ${"t".repeat(random.below(3_000))}`);
  if (random.chance(0.03)) lines.push(`X-Long: ${"x".repeat(random.below(90_000))}`);
  if (random.chance(0.03)) lines.push(...Array.from({ length: random.below(3_000) }, (_, index) => `X-${index}: y`));
  if (random.chance(0.03)) lines.push("Expect: 100-continue");
  if (random.chance(0.03)) lines.push("Transfer-Encoding: chunked");
  let body = "";
  if (random.chance(0.2)) {
    body = random.pick(["5", "x".repeat(random.below(5_000)), "5\r\nhello\r\n0\r\n\r\n", "fffffffff\r\nx"]);
    if (random.chance(0.8)) lines.push(`Content-Length: ${random.chance(0.8) ? body.length : random.below(9_999)}`);
  }
  const bytes = Buffer.from([...lines, "", body].join("\r\n"), "latin1");
  if (random.chance(0.1)) bytes[random.below(bytes.length)] = random.below(256);
  return bytes;
}
