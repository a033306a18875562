import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { never } from "../../ground/base/index.ts";
import { connectLoopbackIn } from "./network-namespace.ts";

const own = "/proc/self/ns/net";

test("a port on the loopback of a network namespace is reached; one where nobody listens is refused", async (context) => {
  if (process.getuid?.() !== 0) return context.skip("entering a namespace needs root");
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let heard = "";
    socket.on("data", (chunk) => (heard += chunk)).on("end", () => socket.end(`heard ${heard}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = await connectLoopbackIn(own, "ipv4", port, never);
  socket.end("hello");
  assert.equal(await text(socket), "heard hello");
  server.close();
  await once(server, "close");
  await assert.rejects(connectLoopbackIn(own, "ipv4", port, never), { code: "ECONNREFUSED" });
  await assert.rejects(connectLoopbackIn("/proc/self/ns/none", "ipv4", port, never), { code: "ENOENT" });
});
