import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import net, { type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mock, test } from "node:test";
import { never } from "../base/index.ts";
import { UnixChannel } from "./unix-channel.ts";
import { serveUnix, serviceOf } from "./unix-server.ts";

const text = {
  encode: (message: unknown) => ({ finish: () => Buffer.from(String(message)) }),
  decode: (bytes: Uint8Array): unknown => Buffer.from(bytes).toString(),
};
const echo = {
  fullName: "test.Echo",
  methods: { say: { name: "Say", requestType: text, responseType: text, responseStream: false } },
};

test("a connection that can't be accepted harms nobody but its client", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-grpc-"));
  const socketPath = join(directory, "echo.sock");
  const made = mock.method(net, "createServer");
  syncBuiltinESMExports();
  try {
    const service = serviceOf(echo, { say: async (request) => `${request}!` });
    await using _ = await serveUnix(socketPath, [service], { maxRequestBytes: 1_000, maxConnections: 10 });
    const listener = made.mock.calls[0]?.result as Server;
    // As Node tells it.
    listener.emit("error", Object.assign(new Error("accept EMFILE"), { code: "EMFILE", syscall: "accept" }));
    const channel = new UnixChannel(socketPath, (_operation, error) => error);
    const call = { operation: "say", deadline: undefined, signal: never };
    assert.equal(await channel.unary(echo.fullName, echo.methods.say, "hello", call), "hello!");
    channel.close();
  } finally {
    made.mock.restore();
    syncBuiltinESMExports();
    await rm(directory, { recursive: true });
  }
});
