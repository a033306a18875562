import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { test } from "node:test";
import { SpdyConnection } from "./client.ts";
import { spdyDictionary } from "./dictionary.ts";
import { dataFrame, FrameCutter } from "./frames.ts";
import { parseHeaders } from "./headers.ts";
import { type ServedStream, SpdySession } from "./server.ts";

test("the dictionary is SPDY's, to the byte", () => {
  assert.equal(spdyDictionary.length, 1423);
  assert.equal(
    createHash("sha256").update(spdyDictionary).digest("hex"),
    "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02",
  );
});

test("headers that lie about their length are refused", () => {
  assert.throws(() => parseHeaders(Buffer.from("00000001ffffffff61", "hex")), /cut off/);
  assert.throws(() => parseHeaders(Buffer.from("ffffffff", "hex")), /too many/);
  assert.deepEqual(parseHeaders(Buffer.from("0000000100000001580000000179", "hex")), new Map([["x", "y"]]));
});

test("frames are found however they were cut on their way", () => {
  const cutter = new FrameCutter();
  const bytes = Buffer.concat([dataFrame(1, Buffer.from("ab"), 0), dataFrame(3, Buffer.from("c"), 1)]);
  const found = [...bytes].flatMap((byte) => cutter.push(Buffer.of(byte)));
  assert.deepEqual(
    found.map((frame) => [frame.type === "data" && frame.id, frame.isLast, frame.content.toString()]),
    [
      [1, false, "ab"],
      [3, true, "c"],
    ],
  );
});

test("a frame that comes byte by byte costs as much for each byte as a short one", () => {
  const msPerByte = (length: number): number => {
    const cutter = new FrameCutter();
    const bytes = dataFrame(1, Buffer.alloc(length), 0);
    let frames = 0;
    const began = performance.now();
    for (let at = 0; at < bytes.length; at++) frames += cutter.push(bytes.subarray(at, at + 1)).length;
    assert.equal(frames, 1);
    return (performance.now() - began) / bytes.length;
  };
  const short = Math.min(...[1, 2, 3].map(() => msPerByte(16 * 1024)));
  const long = Math.min(...[1, 2, 3].map(() => msPerByte(256 * 1024)));
  assert.ok(long < 6 * short, `${long / short} times as much`);
});

/** Both ends of a connection on this machine. */
async function connected(work: (client: Socket, server: Socket) => Promise<void>): Promise<void> {
  const listener = createServer();
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const accepted = once(listener, "connection");
  const client = connect(address.port, "127.0.0.1");
  const [server] = (await accepted) as [Socket];
  try {
    await work(client, server);
  } finally {
    client.destroy();
    server.destroy();
    listener.close();
  }
}

test("what one side says on a stream the other hears, with the stream's headers", async () => {
  await connected(async (client, server) => {
    const served = new Promise<ServedStream>((resolve) => void new SpdySession(server, resolve));
    using connection = new SpdyConnection(client, Buffer.alloc(0), "");
    const stream = await connection.stream({ streamtype: "data", port: "80" });
    const other = await served;
    assert.deepEqual(
      [...other.headers],
      [
        ["streamtype", "data"],
        ["port", "80"],
      ],
    );
    other.pipe(other);
    await stream.write("x".repeat(100_000));
    await stream.end();
    assert.equal(await stream.ended, "finished");
    assert.equal(stream.text.length, 100_000);
  });
});

test("a frame that announces more than anybody sends ends the connection, on both sides", async () => {
  const announcement = Buffer.from("0000000100ffffff", "hex");
  await connected(async (client, server) => {
    using connection = new SpdyConnection(client, Buffer.alloc(0), "");
    const stream = await connection.stream({});
    server.resume().write(announcement);
    assert.equal(await stream.ended, "cut");
  });
  await connected(async (client, server) => {
    const session = new SpdySession(server, () => {});
    client.on("error", () => {}).write(announcement);
    await session.closed;
  });
});
