import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, connect as connectPlain, createServer, type Server, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { test } from "node:test";
import { connect as connectTls } from "node:tls";
import { CertificateAuthority } from "../../../../test/support/certificates.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { apiPorts, FakeViews, TestServer } from "../../../../test/support/node-api.ts";
import { upgrade } from "../../../../test/support/spdy.ts";
import { FakeRuntime } from "../../../beside/hollow/index.ts";
import { CriError, type RuntimeService } from "../../../connections/cri/index.ts";
import { type Clock, systemClock } from "../../../ground/base/index.ts";
import type { ObservedPod, Pod } from "../../../ground/model/index.ts";
import { halfOpenMs } from "./half-open.ts";
import { forwardedPorts, streamOptions } from "./stream-options.ts";
import { streamServices } from "./stream-service.ts";

const pod: Pod = {
  metadata: { name: "web", namespace: "shop", uid: "u" },
  spec: { containers: [{ name: "main" }, { name: "term", tty: true }] },
};

/** A runtime's streaming server that does with each connection what the test says. */
class FakeStreaming implements AsyncDisposable {
  readonly heads: string[] = [];
  readonly sockets = new Set<Socket>();
  readonly #server: Server;

  constructor(answer: (socket: Socket, head: string) => void) {
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      this.sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.sockets.delete(socket));
      let head = Buffer.alloc(0);
      const onData = (chunk: Buffer): void => {
        head = Buffer.concat([head, chunk]);
        const end = head.indexOf("\r\n\r\n");
        if (end < 0) return;
        socket.off("data", onData);
        socket.pause();
        if (head.length > end + 4) socket.unshift(head.subarray(end + 4));
        this.heads.push(head.toString("latin1", 0, end));
        answer(socket, head.toString("latin1", 0, end));
      };
      socket.on("data", onData);
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/exec/t0ken?x=1`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";

/** A server whose runtime knows one running container and answers with the given address. */
async function start(url: string, secure = false, runtime: Partial<RuntimeService> = {}, clock: Clock = systemClock) {
  const asked: unknown[] = [];
  const answer = async (request: unknown) => {
    asked.push(request);
    return { url };
  };
  const fake = new FakeRuntime({ clock: systemClock }).runtime;
  const containers = ["main", "term"].map((name) => ({ name, id: `id-${name}`, state: "running" }));
  const observed = { containers, sandboxes: [{ id: "sandbox", state: "ready" }] } as unknown as ObservedPod;
  const ports = apiPorts({
    runtime: { ...fake, exec: answer, attach: answer, portForward: answer, ...runtime },
    views: new FakeViews(pod),
    runtimeViews: { latest: () => observed, look: async () => observed },
    clock,
  });
  let tls: { cert: string; key: string } | undefined;
  if (secure) {
    const authority = await CertificateAuthority.create("ca");
    const pair = await authority.issueServer({ commonName: "n" }, ["127.0.0.1"]);
    tls = { cert: pair.certPem, key: pair.keyPem };
  }
  return { server: await TestServer.start(streamServices(ports), { clock }, tls), asked };
}

const path = "/exec/shop/web/main?command=sh&input=1&output=1&error=1";

async function connect(server: TestServer, secure: boolean, headers: Record<string, string> = {}, to = path) {
  const result = await upgrade({ port: server.port, path: to, secure, headers }, { Upgrade: "x" });
  if (result.type === "refused") throw new Error(`${result.status}: ${result.text}`);
  result.socket.on("error", () => {});
  if (result.head.length > 0) result.socket.unshift(result.head);
  return result.socket;
}

/** Until the other side ends; unlike an iteration it leaves our own direction open. */
async function readAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk)).resume();
  await new Promise((resolve) => stream.once("end", resolve).once("close", resolve));
  return Buffer.concat(chunks);
}

/** A client that keeps its direction open whatever the server does. */
async function rawUpgrade(server: TestServer, secure: boolean, to: string): Promise<{ raw: Socket; client: Duplex }> {
  const halfOpen = { allowHalfOpen: true };
  const raw = connectPlain({ ...halfOpen, host: "127.0.0.1", port: server.port });
  const client = secure ? connectTls({ ...halfOpen, socket: raw, rejectUnauthorized: false }) : raw;
  raw.on("error", () => {});
  client.on("error", () => {});
  await once(client, secure ? "secureConnect" : "connect");
  client.write(`POST ${to} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
  return { raw, client };
}

/** A peer that has closed for good answers whatever it gets with a reset. */
async function closesWhenProbed(socket: Duplex): Promise<void> {
  while (!socket.closed) {
    if (!socket.destroyed) socket.write("anybody there?");
    await systemClock.sleep(5, new AbortController().signal);
  }
}

test("a runtime that does not answer is given up", async () => {
  await using streaming = new FakeStreaming(() => {});
  const clock = new FakeClock();
  const { server } = await start(await streaming.listen(), false, {}, clock);
  await using _ = server;
  const asking = upgrade({ port: server.port, path, secure: false }, { Upgrade: "x" });
  while (clock.pendingTimers === 0) await systemClock.sleep(5, new AbortController().signal);
  await clock.advance(30_000);
  const text = "error dialing backend: the runtime's stream did not answer";
  assert.deepEqual(await asking, { type: "refused", status: 500, text });
});

for (const secure of [false, true]) {
  const how = secure ? "TLS" : "plain";

  test(`${how}: bytes go through as they are, and each side may end its own direction first`, async () => {
    const question = randomBytes(3_000_000);
    const reply = randomBytes(2_000_000);
    let got: Buffer | undefined;
    await using streaming = new FakeStreaming(async (socket) => {
      socket.write(switching);
      // Only when the client has ended does the runtime begin to speak.
      got = await readAll(socket);
      socket.end(reply);
    });
    const { server } = await start(await streaming.listen(), secure);
    await using _ = server;
    const client = await connect(server, secure);
    client.end(question);
    const answer = await readAll(client);
    assert.equal(got?.length, question.length);
    assert.ok(got?.equals(question), "the question");
    assert.equal(answer.length, reply.length);
    assert.ok(answer.equals(reply), "the reply");
  });

  test(`${how}: the runtime may end its direction first`, async () => {
    let got = "";
    await using streaming = new FakeStreaming(async (socket) => {
      socket.end(`${switching}early`);
      got = (await readAll(socket)).toString();
    });
    const { server } = await start(await streaming.listen(), secure);
    await using _ = server;
    const client = await connect(server, secure);
    assert.equal((await readAll(client)).toString(), "early");
    client.end("late");
    while (streaming.sockets.size > 0) await systemClock.sleep(5, new AbortController().signal);
    assert.equal(got, "late");
  });

  test(`${how}: when one side is gone, so is the other`, async () => {
    const runtimeSides: Socket[] = [];
    await using streaming = new FakeStreaming((socket) => {
      socket.write(switching);
      // As runtimes do: a client that has ended will not come back.
      socket.resume().on("end", () => socket.end());
      runtimeSides.push(socket);
    });
    const { server } = await start(await streaming.listen(), secure);
    await using _ = server;
    const first = await connect(server, secure);
    first.destroy();
    while (streaming.sockets.size > 0) await systemClock.sleep(5, new AbortController().signal);
    const second = await connect(server, secure);
    second.resume();
    runtimeSides[1]?.resetAndDestroy();
    await once(second, "end");
  });

  test(`${how}: a client that has left is not waited for, even by a runtime that does not care`, async () => {
    await using streaming = new FakeStreaming((socket) => socket.resume().write(switching));
    const clock = new FakeClock();
    const { server } = await start(await streaming.listen(), secure, {}, clock);
    await using _ = server;
    const client = await connect(server, secure);
    const [runtimeSide] = streaming.sockets;
    client.destroy();
    await once(runtimeSide as Socket, "end");
    await clock.advance(halfOpenMs);
    await closesWhenProbed(runtimeSide as Socket);
    assert.equal(clock.pendingTimers, 0);
  });

  test(`${how}: what is said after the other side has ended keeps the connection`, async () => {
    await using streaming = new FakeStreaming((socket) => socket.resume().write(switching));
    const clock = new FakeClock();
    const { server } = await start(await streaming.listen(), secure, {}, clock);
    await using _ = server;
    const client = await connect(server, secure);
    const [runtimeSide] = streaming.sockets;
    client.resume().end();
    await once(runtimeSide as Socket, "end");
    for (let round = 0; round < 3; round++) {
      await clock.advance(halfOpenMs - 1);
      const arrived = once(client, "data");
      runtimeSide?.write(`round ${round}`);
      assert.equal(String((await arrived)[0]), `round ${round}`);
    }
    runtimeSide?.end("bye");
    assert.equal((await readAll(client)).toString(), "bye");
  });

  test(`${how}: a slow reader gets all of it after the runtime has ended`, async () => {
    const reply = randomBytes(8_000_000);
    await using streaming = new FakeStreaming((socket) => {
      socket.write(switching);
      socket.end(reply);
    });
    const clock = new FakeClock();
    const { server } = await start(await streaming.listen(), secure, {}, clock);
    await using _ = server;
    const client = await connect(server, secure);
    for (let round = 0; round < 5; round++) {
      await clock.advance(halfOpenMs);
      await systemClock.sleep(20, new AbortController().signal);
    }
    const got = await readAll(client);
    assert.ok(got.equals(reply), `${got.length} of ${reply.length} bytes came`);
  });

  test(`${how}: a client that vanishes while the runtime thinks about it leaves nothing behind`, async () => {
    await using streaming = new FakeStreaming((socket) => socket.resume());
    const { server } = await start(await streaming.listen(), secure);
    await using _ = server;
    const { raw } = await rawUpgrade(server, secure, path);
    while (streaming.sockets.size === 0) await systemClock.sleep(5, new AbortController().signal);
    const [runtimeSide] = streaming.sockets;
    raw.resetAndDestroy();
    await once(runtimeSide as Socket, "end");
    await closesWhenProbed(runtimeSide as Socket);
  });

  test(`${how}: a refused client that does not leave is cut`, async () => {
    const clock = new FakeClock();
    const { server } = await start("", secure, {}, clock);
    await using _ = server;
    const { client } = await rawUpgrade(server, secure, "/exec/shop/web/none?input=1");
    assert.match((await readAll(client)).toString(), /^HTTP\/1\.1 500 /);
    await clock.advance(halfOpenMs);
    await closesWhenProbed(client);
    assert.equal(clock.pendingTimers, 0);
  });

  test(`${how}: stopping the server cuts what is open`, async () => {
    await using streaming = new FakeStreaming((socket) => socket.write(switching));
    const { server } = await start(await streaming.listen(), secure);
    const client = await connect(server, secure);
    client.resume();
    const gone = once(client, "end");
    await server[Symbol.asyncDispose]();
    await gone;
  });
}

test("the runtime sees the client's request at its own address, without credentials", async () => {
  await using streaming = new FakeStreaming((socket) => socket.end(switching));
  const { server, asked } = await start(await streaming.listen());
  await using _ = server;
  const headers = {
    Authorization: "Bearer secret",
    "X-Stream-Protocol-Version": "v4.channel.k8s.io",
    "X-Forwarded-For": "192.0.2.1",
    "Sec-WebSocket-Protocol": "base64url.bearer.authorization.k8s.io.c2VjcmV0, v4.channel.k8s.io",
  };
  await connect(server, false, headers);
  const [head = ""] = streaming.heads;
  const lines = head.split("\r\n");
  assert.equal(lines[0], "POST /exec/t0ken?x=1 HTTP/1.1");
  assert.ok(lines.includes("X-Stream-Protocol-Version: v4.channel.k8s.io"));
  assert.ok(lines.includes("X-Forwarded-For: 192.0.2.1, 127.0.0.1"));
  assert.ok(lines.includes("Sec-WebSocket-Protocol: v4.channel.k8s.io"));
  assert.ok(lines.some((line) => line.startsWith("Host: localhost")));
  assert.doesNotMatch(head, /secret|c2VjcmV0/);
  assert.deepEqual(asked, [
    { containerId: "id-main", cmd: ["sh"], stdin: true, stdout: true, stderr: true, tty: false },
  ]);
});

test("attach takes the container's terminal, whatever the query says", async () => {
  await using streaming = new FakeStreaming((socket) => socket.end(switching));
  const { server, asked } = await start(await streaming.listen());
  await using _ = server;
  for (const [name, query] of [
    ["main", "output=1&tty=1"],
    ["term", "input=1&output=1&error=1"],
  ] as const) {
    await connect(server, false, {}, `/attach/shop/web/${name}?${query}`);
  }
  assert.deepEqual(asked, [
    { containerId: "id-main", stdin: false, stdout: true, stderr: false, tty: false },
    { containerId: "id-term", stdin: true, stdout: true, stderr: false, tty: true },
  ]);
});

for (const [what, answer, status, text] of [
  ["a refusal", "HTTP/1.1 403 Forbidden\r\nX-A: b\r\nContent-Length: 2\r\n\r\nno", 403, "no"],
  ["a refusal without length", "HTTP/1.1 404 Not Found\r\n\r\ngone", 404, "gone"],
  [
    "a redirect",
    "HTTP/1.1 302 Found\r\nLocation: http://evil/\r\n\r\n",
    500,
    "invalid upgrade response: status code 302",
  ],
  ["success without a switch", "HTTP/1.1 200 OK\r\n\r\n", 500, "invalid upgrade response: status code 200"],
  ["rubbish", "what?\r\n\r\n", 500, "error dialing backend: the runtime's stream does not speak HTTP"],
  ["silence", "", 500, "error dialing backend: the runtime's stream ended before it began"],
] as const) {
  test(`the runtime answers with ${what}`, async () => {
    await using streaming = new FakeStreaming((socket) => socket.end(answer));
    const { server } = await start(await streaming.listen());
    await using _ = server;
    const result = await upgrade({ port: server.port, path, secure: false }, { Upgrade: "x" });
    assert.deepEqual(result, { type: "refused", status, text });
    while (streaming.sockets.size > 0) await systemClock.sleep(5, new AbortController().signal);
  });
}

test("nobody at the runtime's address", async () => {
  await using streaming = new FakeStreaming(() => {});
  const url = await streaming.listen();
  await streaming[Symbol.asyncDispose]();
  const { server } = await start(url);
  await using _ = server;
  const result = await upgrade({ port: server.port, path, secure: false }, { Upgrade: "x" });
  assert.equal(result.type, "refused");
  if (result.type === "refused") assert.match(result.text, /^error dialing backend: connect ECONNREFUSED/);
});

for (const [code, status] of [
  ["NotFound", 404],
  ["ResourceExhausted", 429],
  ["Internal", 500],
] as const) {
  test(`the runtime refuses the call with ${code}`, async () => {
    const portForward = async () => {
      throw new CriError(code, "portForward", "no");
    };
    const { server } = await start("", false, { portForward });
    await using _ = server;
    const target = { port: server.port, path: "/portForward/shop/web", secure: false };
    const result = await upgrade(target, { Upgrade: "SPDY/3.1" });
    assert.deepEqual(result, { type: "refused", status, text: `rpc error: code = ${code} desc = no` });
  });
}

for (const [query, expected] of [
  ["input=1", { stdin: true, stdout: false, stderr: false, tty: false }],
  ["output=1&error=1&tty=1", { stdin: false, stdout: true, stderr: false, tty: true }],
  ["output=1&error=1&tty=true", { stdin: false, stdout: true, stderr: true, tty: false }],
  ["stdin=true&stdout=true", "you must specify at least 1 of stdin, stdout, stderr"],
  ["error=1&tty=1", "you must specify at least 1 of stdin, stdout, stderr"],
] as const) {
  test(`streams of ${query}`, () => {
    const parse = () => streamOptions(new URLSearchParams(query));
    if (typeof expected === "string") assert.throws(parse, { message: expected, status: 400 });
    else assert.deepEqual(parse(), expected);
  });
}

for (const [query, protocol, expected] of [
  ["port=80", "SPDY/3.1", []],
  ["port=80&port=443,8080", "websocket", [80, 443, 8080]],
  ["", "WebSocket", 'query parameter "port" is required'],
  ["port=", "websocket", 'query parameter "port" cannot be empty'],
  ["port=x", "websocket", 'unable to parse "x" as a port: invalid syntax'],
  ["port=0", "websocket", 'port "0" must be > 0'],
  ["port=65536", "websocket", 'unable to parse "65536" as a port: value out of range'],
] as const) {
  test(`ports of ${query} over ${protocol}`, () => {
    const parse = () => forwardedPorts(new URLSearchParams(query), protocol);
    if (typeof expected === "string") assert.throws(parse, { message: expected, status: 400 });
    else assert.deepEqual(parse(), expected);
  });
}
