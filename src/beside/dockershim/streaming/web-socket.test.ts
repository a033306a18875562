import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { until } from "../../../../test/support/until.ts";
import { never } from "../../../ground/base/index.ts";
import type { RemoteCommand } from "./remote-command.ts";
import { openWebSocketCommand } from "./web-socket-command.ts";

const stdin = 0;
const resize = 4;
const opcode = { continuation: 0, binary: 2, ping: 9 };

/** A frame as clients send it; the mask changes nothing. */
function frame(kind: number, content: Buffer, isLast = true): Buffer {
  const head = Buffer.alloc(8);
  head[0] = (isLast ? 0x80 : 0) | kind;
  if (content.length < 126) {
    head[1] = 0x80 | content.length;
    return Buffer.concat([head.subarray(0, 6), content]);
  }
  head[1] = 0x80 | 126;
  head.writeUInt16BE(content.length, 2);
  return Buffer.concat([head, content]);
}

function said(channel: number, content: Buffer): Buffer {
  return frame(opcode.binary, Buffer.concat([Buffer.of(channel), content]));
}

/** A command whose client is at the other end of a connection. */
async function withCommand(
  work: (parts: { client: Socket; socket: Socket; remote: RemoteCommand; clock: FakeClock }) => Promise<void>,
): Promise<void> {
  const server = createServer({ allowHalfOpen: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection") as Promise<[Socket]>;
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
  const [socket] = await accepted;
  socket.on("error", () => socket.destroy());
  const clock = new FakeClock();
  const asked = { containerId: "c", tty: true, stdin: true, stdout: true, stderr: false };
  try {
    const remote = openWebSocketCommand(socket, asked, "v5.channel.k8s.io", clock, never);
    await work({ client, socket, remote, clock });
  } finally {
    client.destroy();
    socket.destroy();
    server.close();
  }
}

test("a client that is still talking when its command ends is not kept", async () => {
  await withCommand(async ({ client, socket, remote }) => {
    client.resume();
    for (let count = 0; count < 10; count++) client.write(said(stdin, Buffer.alloc(60_000)));
    await until("it is held back", () => socket.isPaused());
    const finished = remote.finish({ type: "exit", code: 0 });
    client.end();
    await finished;
    await remote.closed;
    assert.ok(socket.destroyed);
  });
});

test("a client that hears the end and does not close is left", async () => {
  await withCommand(async ({ client, socket, remote, clock }) => {
    client.resume();
    const finished = remote.finish({ type: "exit", code: 0 });
    await clock.advance(10_000);
    await finished;
    assert.deepEqual([socket.destroyed, clock.pendingTimers], [true, 0]);
  });
});

test("a client that leaves while it is held back is seen to leave", async () => {
  await withCommand(async ({ client, socket, remote, clock }) => {
    for (let count = 0; count < 10; count++) client.write(said(stdin, Buffer.alloc(60_000)));
    await until("it is held back", () => socket.isPaused());
    client.destroy();
    let isClosed = false;
    void remote.closed.then(() => (isClosed = true));
    await until("it is seen", async () => {
      await clock.advance(10_000);
      return isClosed;
    });
    assert.equal(clock.pendingTimers, 0);
  });
});

test("sizes of a terminal that nobody reads hold the client back", async () => {
  await withCommand(async ({ client, socket }) => {
    for (let count = 0; count < 200; count++) client.write(said(resize, Buffer.alloc(60_000)));
    await until("it is held back", () => socket.isPaused());
  });
});

test("a client that asks whether we are there and does not read the answers gets few of them", async () => {
  await withCommand(async ({ client, socket }) => {
    client.pause();
    const pings = Buffer.concat(Array.from({ length: 10_000 }, () => frame(opcode.ping, Buffer.alloc(125))));
    for (let count = 0; count < 20; count++) client.write(pings);
    await until("all is heard", () => socket.bytesRead >= 20 * pings.length);
    assert.ok(socket.writableLength < 1_000_000, `${socket.writableLength} bytes wait`);
  });
});

test("a question that is longer than questions are ends the connection", async () => {
  await withCommand(async ({ client, remote }) => {
    client.resume();
    client.write(frame(opcode.ping, Buffer.alloc(200)));
    await remote.closed;
  });
});
