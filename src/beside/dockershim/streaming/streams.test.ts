import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { PassThrough, Readable } from "node:stream";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { openSpdy, type UpgradeTarget, upgrade } from "../../../../test/support/spdy.ts";
import { until } from "../../../../test/support/until.ts";
import { ChannelSocket } from "../../../../test/support/websocket.ts";
import { silentLogger, systemClock } from "../../../ground/base/index.ts";
import type { ShimContext } from "../service/context.ts";
import { Tokens } from "./one-time-tokens.ts";
import { splice } from "./pod-port.ts";
import { plainStatusOf, sizesIn, statusOf } from "./remote-command.ts";
import { chooseProtocol, StreamServer } from "./stream-server.ts";
import { encodeFrame, parseFrame } from "./web-socket.ts";

test("a token is good once, and for a minute; there are never more than a thousand", async () => {
  const clock = new FakeClock();
  const tokens = new Tokens<string>(clock);
  const token = tokens.grant("exec", "request");
  assert.match(token, /^[\w-]{8}$/);
  assert.deepEqual([tokens.redeem(token), tokens.redeem(token)], ["request", undefined]);
  const old = tokens.grant("exec", "old");
  await clock.advance(60_000);
  assert.equal(tokens.redeem(old), undefined);
  for (let count = 0; count < 1000; count++) tokens.grant("exec", "many");
  assert.throws(() => tokens.grant("exec", "one more"), /maximum number of in-flight requests exceeded/);
});

for (const { wished, want } of [
  { wished: undefined, want: "channel.k8s.io" },
  { wished: "v5.channel.k8s.io, v4.channel.k8s.io,v3.channel.k8s.io", want: "v4.channel.k8s.io" },
  { wished: ["v3.channel.k8s.io", "v4.channel.k8s.io"], want: "v3.channel.k8s.io" },
  { wished: "v9.channel.k8s.io", want: undefined },
]) {
  test(`of ${String(wished)} the protocol is ${want}`, () => {
    const offered = ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
    assert.equal(chooseProtocol(wished, offered), want);
  });
}

test("how a command ended is told as API servers tell it", () => {
  assert.deepEqual(statusOf({ type: "exit", code: 0 }), { metadata: {}, status: "Success" });
  const failed = statusOf({ type: "exit", code: 3 }) as { reason: string; details: object };
  assert.deepEqual(
    [failed.reason, failed.details],
    ["NonZeroExitCode", { causes: [{ reason: "ExitCode", message: "3" }] }],
  );
  assert.equal(plainStatusOf({ type: "failed", message: "why" }), "why");
});

test("sizes of a terminal come in pieces or several at once; rubbish is passed over", async () => {
  const pieces = ['{"Width":80,"Hei', 'ght":24}{"Width":0,"Height":1}', '{"Width":81,"Height":25}{nonsense}'];
  const sizes = [];
  for await (const size of sizesIn(Readable.from(pieces))) sizes.push(size);
  assert.deepEqual(sizes, [
    { columns: 80, rows: 24 },
    { columns: 81, rows: 25 },
  ]);
});

test("frames of a WebSocket: masked ones are read, others refused, long ones too", () => {
  const masked = Buffer.from("8185000000006162636465", "hex");
  assert.equal(parseFrame(masked)?.content.toString(), "abcde");
  assert.equal(parseFrame(masked.subarray(0, 6)), undefined);
  assert.throws(() => parseFrame(encodeFrame(2, Buffer.from("x"))), /must mask/);
  assert.throws(() => parseFrame(Buffer.from("82ffffffffffffffffff00000000", "hex")), /too long/);
  for (const length of [5, 200, 70_000]) assert.ok(encodeFrame(2, Buffer.alloc(length)).length > length);
});

/** Forwards to a server of this test, as if that were in a pod on the node's own network. */
async function forwarding(
  onConnection: (socket: Socket) => void,
  work: (server: StreamServer, port: number) => Promise<void>,
): Promise<void> {
  const listener = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    onConnection(socket);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const sandbox = { state: { running: true, pid: 1 }, host: { networkMode: "host" } };
  const context = { engine: { inspectContainer: async () => sandbox }, clock: systemClock, log: silentLogger };
  await using server = new StreamServer(context as unknown as ShimContext);
  await server.listen("127.0.0.1:0");
  try {
    await work(server, port);
  } finally {
    listener.close();
  }
}

function targetOf(server: StreamServer, ports: readonly number[]): UpgradeTarget {
  const { port, pathname } = new URL(server.requests.portForward({ podSandboxId: "s", port: ports }));
  return { port: Number(port), path: pathname, secure: false };
}

/** The two streams of one connection to a port. */
async function openPair(connection: Awaited<ReturnType<typeof openSpdy>>, port: number) {
  const headers = { port: String(port), requestid: "0" };
  const error = await connection.stream({ streamtype: "error", ...headers });
  await error.end();
  return { error, data: await connection.stream({ streamtype: "data", ...headers }) };
}

test("what a client says after the server has ended its half arrives, and all of it", async () => {
  const length = 3_000_000;
  const heard = new Promise<number>((resolve) => {
    void forwarding(
      (socket) => {
        let bytes = 0;
        socket.end("go on");
        socket.on("data", (chunk) => (bytes += chunk.length)).on("end", () => resolve(bytes));
      },
      async (server, port) => {
        using connection = await openSpdy(targetOf(server, []), "portforward.k8s.io");
        const { data, error } = await openPair(connection, port);
        assert.equal(await data.ended, "finished");
        for (let sent = 0; sent < length; sent += 30_000) await data.write(Buffer.alloc(30_000));
        await data.end();
        await error.ended;
      },
    );
  });
  assert.equal(await heard, length);
});

test("a client that has left while the pod was called leaves no connection to it behind", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const target = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(target, "connect");
  const client = new PassThrough().destroy();
  await once(client, "close");
  await splice(client, target);
  assert.ok(target.destroyed);
  server.close();
});

test("a server that breaks off ends the client's side too", async () => {
  await forwarding(
    (socket) => socket.once("data", () => socket.resetAndDestroy()),
    async (server, port) => {
      using connection = await openSpdy(targetOf(server, []), "portforward.k8s.io");
      const { data, error } = await openPair(connection, port);
      await data.write("anything");
      assert.equal(await data.ended, "finished");
      await error.ended;
    },
  );
});

for (const protocol of ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"]) {
  test(`a port over a WebSocket with ${protocol}: named on both channels, carried both ways, and over with the server`, async () => {
    const length = 300_000;
    await forwarding(
      (socket) => socket.once("data", (said) => socket.end(Buffer.concat([said, Buffer.alloc(length, "y")]))),
      async (server, port) => {
        using client = await ChannelSocket.open(targetOf(server, [port, 1]), protocol);
        assert.equal(client.protocol, protocol);
        client.send(0, "x");
        await client.closed;
        const named = (of: number): Buffer => Buffer.of(of & 0xff, of >> 8);
        assert.deepEqual(client.bytes(0), Buffer.concat([named(port), Buffer.from(`x${"y".repeat(length)}`)]));
        assert.deepEqual([client.bytes(1), client.bytes(2)], [named(port), named(1)]);
        assert.match(client.text(3).slice(2), /^error forwarding port 1 to pod s, uid : .*ECONNREFUSED/);
      },
    );
  });
}

test("a client of a WebSocket that leaves takes its connection to the pod along", async () => {
  let hasLeft = false;
  await forwarding(
    (socket) => {
      socket
        .once("end", () => (hasLeft = true))
        .resume()
        .write("hello");
    },
    async (server, port) => {
      using client = await ChannelSocket.open(targetOf(server, [port]), "v4.channel.k8s.io");
      await until("the pod speaks", () => client.text(0).endsWith("hello"));
      client[Symbol.dispose]();
      await until("the pod is left", () => hasLeft);
    },
  );
});

for (const { ports, why } of [
  { ports: [], why: 'query parameter "port" is required' },
  { ports: [80, 70_000], why: "invalid port 70000" },
  { ports: Array.from({ length: 33 }, () => 80), why: "more than 32 ports over one WebSocket" },
]) {
  test(`${ports.length} ports over a WebSocket are refused: ${why}`, async () => {
    await forwarding(
      () => {},
      async (server) => {
        const headers = { Upgrade: "websocket", "Sec-WebSocket-Key": "k" };
        const answer = await upgrade({ ...targetOf(server, ports), method: "GET" }, headers);
        assert.deepEqual(answer, { type: "refused", status: 400, text: `${why}\n` });
      },
    );
  });
}
