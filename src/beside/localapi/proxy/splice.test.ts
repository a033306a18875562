import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { join } from "./splice.ts";

async function listening(onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, onConnection).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

test("what a target said last reaches a client that takes its time", async () => {
  const received: Buffer[] = [];
  const client = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, taken) {
      setImmediate(() => {
        received.push(chunk);
        taken();
      });
    },
  });
  const target = new Duplex({ read() {}, write: (_chunk, _encoding, taken) => taken() });
  join(client, target);
  for (const words of ["one ", "two ", "three"]) target.push(words);
  target.push(null);
  await once(target, "end");
  target.destroy();
  await once(client, "close");
  assert.equal(Buffer.concat(received).toString(), "one two three");
});

for (const leaver of ["client", "target"] as const) {
  test(`when the ${leaver} breaks off, the other side is let go`, async () => {
    const sides: Socket[] = [];
    const target = await listening((socket) => sides.push(socket.on("error", () => {}).resume()));
    const proxy = await listening((client) => join(client, connect({ port: portOf(target), host: "127.0.0.1" })));
    try {
      const client = connect(portOf(proxy), "127.0.0.1").on("error", () => {});
      client.resume();
      client.write("hello");
      while (sides.length === 0 || sides[0]?.bytesRead === 0) await new Promise((resolve) => setImmediate(resolve));
      const [far] = sides;
      assert.ok(far !== undefined);
      const [leaves, stays] = leaver === "client" ? [client, far] : [far, client];
      const ended = once(stays, "end");
      leaves.resetAndDestroy();
      await Promise.race([ended, once(stays, "close")]);
      stays.destroy();
    } finally {
      target.close();
      proxy.close();
    }
  });
}
