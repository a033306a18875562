import assert from "node:assert/strict";
import { test } from "node:test";
import { MessageStream } from "./message-stream.ts";
import { type BusMessage, decodeMessage, encodeMessage } from "./messages.ts";
import { ValueReader } from "./read-values.ts";
import type { BusValue } from "./values.ts";
import { writeValues } from "./write-values.ts";

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(/\s/g, ""), "hex");

test("values of every type come back as they were, and are laid out as the specification says", () => {
  const table: readonly (readonly [string, readonly BusValue[], string?])[] = [
    ["s", ["foo"], "03000000 666f6f00"],
    ["yu", [1, 2], "01 000000 02000000"],
    ["at", [[1n]], "08000000 00000000 0100000000000000"],
    ["a(sv)", [[["a", { signature: "b", value: true }]]], "10000000 00000000 01000000 6100 016200 000000 01000000"],
    ["ay", [new Uint8Array([1, 2])], "02000000 0102"],
    ["nqixd", [-1, 65_535, -2, -3n, 1.5]],
    ["t", [2n ** 64n - 1n]],
    ["as", [["", "é"]]],
    ["a{sv}", [[["k", { signature: "as", value: ["x"] }]]]],
    ["oghv", ["/a", "a(sv)", 0, { signature: "v", value: { signature: "s", value: "deep" } }]],
    ["a(sa(sv))", [[]]],
  ];
  for (const [signature, values, hex] of table) {
    const written = writeValues(signature, values);
    if (hex !== undefined) assert.equal(written.toString("hex"), bytes(hex).toString("hex"), signature);
    assert.deepEqual(new ValueReader(written, "little").readAll(signature), values);
  }
});

test("numbers in the other byte order", () => {
  assert.deepEqual(new ValueReader(bytes("00000003 666f6f00"), "big").readAll("s"), ["foo"]);
});

for (const [signature, hex] of [
  ["s", "ffffffff 00"],
  ["s", "03000000 666f6f01"],
  ["at", "ffffff7f 00000000"],
  ["at", "04000000 00000000 01000000 00000000"],
  ["v", "02737300"],
  ["v", "012800"],
  ["a()", "00000000"],
  ["(", ""],
  ["a", ""],
  ["z", ""],
  ["a".repeat(200), ""],
  ["s".repeat(300), ""],
] as const) {
  test(`rubbish is an error: ${signature.slice(0, 10)} from ${hex}`, () => {
    assert.throws(() => new ValueReader(bytes(hex), "little").readAll(signature));
  });
}

test("variants in variants without end are an error, not an overflow", () => {
  const nested = Buffer.concat([...Array.from({ length: 1000 }, () => bytes("017600")), bytes("01790001")]);
  assert.throws(() => new ValueReader(nested, "little").readAll("v"), /nested too deeply/);
});

const message: BusMessage = {
  type: "call",
  serial: 7,
  path: "/org/freedesktop/systemd1",
  interface: "org.freedesktop.systemd1.Manager",
  member: "StopUnit",
  destination: "org.freedesktop.systemd1",
  signature: "ss",
  body: ["a.slice", "replace"],
};

test("a message comes back as it was, in whatever pieces it arrives", () => {
  const stream = Buffer.concat([encodeMessage(message), encodeMessage({ ...message, serial: 8 })]);
  for (const size of [1, 3, 16, 17, stream.length]) {
    const messages = new MessageStream();
    const found = [];
    for (let at = 0; at < stream.length; at += size) found.push(...messages.take(stream.subarray(at, at + size)));
    assert.deepEqual(
      found.map(({ serial }) => serial),
      [7, 8],
    );
    const { readBody, ...header } = found[0] ?? assert.fail("no message");
    assert.deepEqual({ ...header, body: readBody() }, message);
  }
});

test("a message that is too large is an error before it is here", () => {
  const head = (body: number, fields: number): Buffer => {
    const start = Buffer.alloc(16);
    start.write("l\x04\x00\x01", "latin1");
    start.writeUInt32LE(body, 4);
    start.writeUInt32LE(1, 8);
    start.writeUInt32LE(fields, 12);
    return start;
  };
  assert.throws(() => [...new MessageStream().take(head(2 ** 31, 0))], /D-Bus message of 2147483664 bytes/);
  assert.throws(() => [...new MessageStream().take(head(0, 100_000))], /D-Bus header of 100000 bytes/);
  assert.deepEqual([...new MessageStream().take(head(1000, 0))], []);
});

test("a header field of another type than its own is an error", () => {
  const spoilt = encodeMessage(message);
  spoilt[spoilt.indexOf("\x01o\x00", 0, "latin1") + 1] = "s".charCodeAt(0);
  assert.throws(() => decodeMessage(spoilt), /D-Bus header field path of type s/);
});
