import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { Agent, request as ask } from "node:https";
import { connect, type Socket } from "node:net";
import { after, describe, test } from "node:test";
import { openDescriptors } from "../../../../test/fuzz/leaks.ts";
import { TestServer } from "../../../../test/support/node-api.ts";
import { RawClient } from "../../../../test/support/raw-client.ts";
import { TestAuthority } from "../../../../test/support/test-certificates.ts";
import { until } from "../../../../test/support/until.ts";

import { listen, serve, untilClientLeaves } from "../http.ts";
import type { Gate } from "./gate.ts";
import type { ApiHandler, ApiMount } from "./router.ts";

const bigBytes = 8 * 1024 * 1024;
const path = (at: string, handle: ApiHandler): ApiMount => ({ type: "path", path: at, handle });

/** Takes its time between two pieces, as the client does. */
const big = path("/big", async ({ response }) => {
  response.writeHead(200, { "Content-Length": bigBytes });
  for (let sent = 0; sent < bigBytes; sent += 64 * 1024) {
    if (!response.write(Buffer.alloc(64 * 1024, "x"))) await once(response, "drain");
  }
  response.end();
});

describe("a wish to speak another protocol where none is spoken", () => {
  const authority = new TestAuthority();
  const pair = authority.server();
  after(() => authority.remove());
  for (const secure of [false, true]) {
    const tls = secure ? { cert: pair.certificate, key: pair.key } : undefined;
    const upgrade = "Connection: Upgrade\r\nUpgrade: anything\r\n";

    test(`is ignored, and the answer comes whole${secure ? ", with TLS" : ""}`, async () => {
      let body = "";
      const echo = path("/echo", async ({ request, response }) => {
        for await (const chunk of request) body += chunk;
        response.end("heard");
      });
      await using server = await TestServer.start([big, echo], {}, tls);
      using client = await RawClient.open({ port: server.port, secure });
      await client.send(`GET /big HTTP/1.1\r\nHost: node\r\n${upgrade}\r\n`);
      await client.closed;
      assert.equal(client.statuses[0], 200);
      assert.equal(client.text.length - client.text.indexOf("\r\n\r\n") - 4, bigBytes);
      using posting = await RawClient.open({ port: server.port, secure });
      await posting.send(`POST /echo HTTP/1.1\r\nHost: node\r\n${upgrade}Content-Length: 4\r\n\r\nbo`);
      await posting.send("dy");
      await posting.closed;
      assert.equal(body, "body");
      assert.match(posting.text, /^HTTP\/1\.1 200 OK\r\n[\s\S]*heard/);
    });

    test(`leaves nothing behind when the client goes${secure ? ", with TLS" : ""}`, async () => {
      let following = 0;
      const follow = path("/follow", async ({ response }) => {
        const signal = untilClientLeaves(response);
        following++;
        response.writeHead(200);
        response.flushHeaders();
        if (!signal.aborted) await once(signal, "abort");
        following--;
      });
      await using server = await TestServer.start([follow], {}, tls);
      const before = openDescriptors();
      const clients = await Promise.all(
        Array.from({ length: 10 }, () => RawClient.open({ port: server.port, secure })),
      );
      for (const client of clients) await client.send(`GET /follow HTTP/1.1\r\nHost: node\r\n${upgrade}\r\n`);
      await until("all follow", () => following === 10);
      for (const [index, { socket }] of clients.entries()) index % 2 === 0 ? socket.end() : socket.destroy();
      await until("nobody follows", () => following === 0);
      await until("every connection is closed", () => openDescriptors() <= before);
    });
  }
});

test("authorities that were taken away are not believed on connections they opened", async () => {
  const [old, current] = [new TestAuthority(), new TestAuthority()];
  const pair = old.server();
  const waiting = new Set<() => void>();
  const mounts = [
    path("/now", ({ response }) => void response.end("now")),
    path("/later", async ({ response }) => {
      response.writeHead(200);
      response.flushHeaders();
      await new Promise<void>((resolve) => waiting.add(resolve));
      response.end("later");
    }),
  ];
  const serving = { cert: pair.certificate, key: pair.key };
  await using server = await TestServer.start(mounts, {}, { ...serving, ca: [old.certificate, current.certificate] });
  const client = old.client("admin");
  const agent = new Agent({ keepAlive: true, cert: client.certificate, key: client.key, rejectUnauthorized: false });
  const get = async (at: string): Promise<IncomingMessage> => {
    const sent = ask({ host: "127.0.0.1", port: server.port, path: at, agent }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return response;
  };
  const text = async (response: IncomingMessage): Promise<string> => {
    let all = "";
    for await (const chunk of response) all += chunk;
    return all;
  };
  try {
    const used = await get("/now");
    const socket = used.socket;
    await text(used);
    const begun = await get("/later");
    server.server.renewTls({ ...serving, ca: [old.certificate, current.certificate] });
    assert.equal(begun.socket.destroyed, false);
    server.server.renewTls({ ...serving, ca: [current.certificate] });
    await until("an idle connection is cut", () => socket.destroyed || begun.socket === socket);
    for (const resolve of waiting) resolve();
    assert.equal(await text(begun), "later");
    // The connection is still open; the next request on it is not answered.
    await assert.rejects(get("/now"), { code: "ECONNRESET" });
  } finally {
    agent.destroy();
    old.remove();
    current.remove();
  }
});

test("a connection that cannot be accepted does not end the server", async () => {
  const server = createServer();
  await listen(server, { host: "127.0.0.1", port: 0 });
  const stop = new AbortController();
  const serving = serve(server, stop.signal);
  server.emit("error", Object.assign(new Error("accept ENOBUFS"), { code: "ENOBUFS", syscall: "accept" }));
  server.emit("error", Object.assign(new Error("accept ENOMEM"), { code: "ENOMEM", syscall: "accept" }));
  assert.equal(server.listening, true);
  stop.abort();
  await serving;
  assert.equal(server.listening, false);
});

describe("connections of those who have shown nothing", () => {
  const mounts = [path("/", ({ response }) => void response.end("in"))];
  const gate: Gate = {
    refuse: async ({ headers }) => (headers.authorization === "yes" ? undefined : { status: 401, text: "no" }),
  };
  async function open(port: number, localAddress: string, count: number): Promise<readonly Socket[]> {
    const sockets = Array.from({ length: count }, () => connect({ port, host: "127.0.0.1", localAddress }));
    for (const socket of sockets) socket.on("error", () => {}).resume();
    await Promise.all(sockets.map((socket) => once(socket, "connect").catch(() => {})));
    return sockets;
  }
  const left = (sockets: readonly Socket[]): number => sockets.filter(({ closed }) => !closed).length;

  test("each address has so many, and loses its own oldest beyond", async () => {
    await using server = await TestServer.start(mounts, { gate });
    const [other] = await open(server.port, "127.0.0.2", 1);
    const many = await open(server.port, "127.0.0.1", 300);
    await until("all but 256 are cut", () => left(many) === 256);
    assert.equal(left(other === undefined ? [] : [other]), 1);
    const { status } = await server.ask("/", { headers: { authorization: "yes" } });
    assert.equal(status, 200);
    for (const socket of [...many, other]) socket?.destroy();
  });

  test("all together have so many; who has most loses first", async () => {
    await using server = await TestServer.start(mounts, { gate });
    const few = await open(server.port, "127.0.0.9", 10);
    const groups = [];
    for (let index = 1; index <= 5; index++) groups.push(await open(server.port, `127.0.0.${index}`, 250));
    const many = groups.flat();
    await until("a thousand are left", () => left(many) === 1024 - 10);
    assert.equal(left(few), 10);
    for (const socket of [...many, ...few]) socket.destroy();
  });

  test("who was let in is none of them; who was refused is", async () => {
    await using server = await TestServer.start(mounts, { gate });
    const known = await open(server.port, "127.0.0.1", 20);
    const refused = await open(server.port, "127.0.0.1", 20);
    const answers = [...known, ...refused].map((socket) => once(socket, "data"));
    for (const socket of known) socket.write("GET / HTTP/1.1\r\nHost: n\r\nAuthorization: yes\r\n\r\n");
    for (const socket of refused) socket.write("GET / HTTP/1.1\r\nHost: n\r\n\r\n");
    await Promise.all(answers);
    const many = await open(server.port, "127.0.0.1", 256);
    await until("those who were refused are cut for the new ones", () => left(refused) === 0);
    assert.deepEqual([left(known), left(many)], [20, 256]);
    for (const socket of [...known, ...many]) socket.destroy();
  });
});

describe("requests sent ahead of answers", () => {
  const order: string[] = [];
  const open = new Set<() => void>();
  const mounts = [
    path("/wait", async ({ response, query }) => {
      const signal = untilClientLeaves(response);
      order.push(`begin ${query.get("n")}`);
      await new Promise<void>((resolve) => {
        open.add(resolve);
        signal.addEventListener("abort", () => resolve());
      });
      order.push(`end ${query.get("n")}`);
      if (!signal.aborted) response.end(query.get("n"));
    }),
    { type: "service", path: "/stream", routes: [], upgrades: true } as const,
  ];
  const get = (n: number): string => `GET /wait?n=${n} HTTP/1.1\r\nHost: node\r\n\r\n`;

  test("are answered in their order, and not begun once the client has left", async () => {
    order.length = 0;
    await using server = await TestServer.start(mounts);
    using client = await RawClient.open({ port: server.port, secure: false });
    await client.send(get(1) + get(2) + get(3));
    await until("the first has begun", () => order.length === 1);
    for (const resolve of open) resolve();
    await until("the second has begun", () => order.length === 3);
    client.socket.destroy();
    await until("the second has ended", () => order.length === 4);
    assert.deepEqual(order, ["begin 1", "end 1", "begin 2", "end 2"]);
  });

  for (const target of ["/stream", "/wait"]) {
    test(`a wish for another protocol at ${target} behind one that Node refuses by itself ends that connection alone`, async () => {
      await using server = await TestServer.start(mounts);
      using client = await RawClient.open({ port: server.port, secure: false });
      const upgrade = `GET ${target} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`;
      await client.send(`GET /none HTTP/1.1\r\n\r\n${upgrade}`);
      await client.closed;
      assert.equal((await server.ask("/none")).status, 404);
    });
  }

  test("without end are cut off", async () => {
    await using server = await TestServer.start(mounts);
    using client = await RawClient.open({ port: server.port, secure: false });
    await client.send(Array.from({ length: 1_000 }, (_, n) => get(n)).join(""));
    await client.closed;
  });

  for (const target of ["/stream", "/wait"]) {
    test(`a wish for another protocol at ${target} behind one under way ends that connection alone`, async () => {
      order.length = 0;
      await using server = await TestServer.start(mounts);
      using client = await RawClient.open({ port: server.port, secure: false });
      await client.send(get(1));
      await until("the first has begun", () => order.length === 1);
      await client.send(`GET ${target} HTTP/1.1\r\nHost: node\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`);
      await client.closed;
      await until("the first has ended", () => order.length === 2);
      assert.equal((await server.ask("/none")).status, 404);
    });
  }
});
