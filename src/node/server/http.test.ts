import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { leastProcessorTime } from "../../../test/support/processor-time.ts";
import { httpServer, listen, mostConnections, sendText } from "./http.ts";

const server = httpServer(
  new Map([["/there", (_request, _url, response) => sendText(response, 200, "here")]]),
  (error) => assert.fail(String(error)),
);
before(() => listen(server, { host: "127.0.0.1", port: 0 }));
after(() => {
  server.close();
  server.closeAllConnections();
});

function port(): number {
  return (server.address() as AddressInfo).port;
}

async function statusOf(path: string): Promise<number | undefined> {
  const [answer] = (await once(get({ port: port(), path, agent: false }), "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "close");
  return answer.statusCode;
}

for (const [path, status] of [
  ["/there", 200],
  ["/there/", 200],
  ["/there///?x=/", 200],
  ["/there/x", 404],
  ["/", 404],
] as const) {
  test(`${path} is answered with ${status}`, async () => assert.equal(await statusOf(path), status));
}

test("very many slashes take time by their number, not by its square", async () => {
  const cost = async (requests: number): Promise<number> => {
    const path = `/there${"/".repeat(15_000 / requests)}x`;
    return await leastProcessorTime(async () => {
      for (let sent = 0; sent < requests; sent++) assert.equal(await statusOf(path), 404);
    });
  };
  // In one piece it would take ten times as long; as it is, ten requests take longer than one.
  const ratio = (await cost(1)) / (await cost(10));
  assert.ok(ratio < 3, `${ratio} times the time`);
});

test("connections beyond those that are served at once are closed, and others served when they are gone", async () => {
  const sockets: Socket[] = [];
  const open = async (): Promise<Socket> => {
    const socket = connect(port(), "127.0.0.1");
    sockets.push(socket);
    await once(socket, "connect");
    return socket;
  };
  try {
    for (let count = 0; count < mostConnections; count++) await open();
    const surplus = await open();
    surplus.resume();
    await once(surplus, "close");
    assert.ok(sockets.every((socket) => socket === surplus || !socket.closed));
    for (const socket of sockets) socket.destroy();
    while ((await connectionsOf()) > 0) await new Promise(setImmediate);
    assert.equal(await statusOf("/there"), 200);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});

function connectionsOf(): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}
