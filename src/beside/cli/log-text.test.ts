import assert from "node:assert/strict";
import { test } from "node:test";
import { logLineJson, logLines, VisibleStream } from "./log-text.ts";

async function linesOf(...chunks: readonly (string | Uint8Array)[]) {
  async function* source() {
    for (const chunk of chunks) yield Buffer.from(chunk);
  }
  const found: [string, boolean][] = [];
  for await (const { bytes, isEnd } of logLines(source())) found.push([bytes.toString(), isEnd]);
  return found;
}

test("lines that come in pieces, and one without an end", async () => {
  assert.deepEqual(await linesOf("a\nb", "c\n", "\n", "d"), [
    ["a", true],
    ["bc", true],
    ["", true],
    ["d", true],
  ]);
});

test("a line that never ends is not kept", async () => {
  const piece = "x".repeat(700_000);
  const found = await linesOf(piece, piece, "y\n");
  assert.deepEqual(
    found.map(([text, isEnd]) => [text.length, isEnd]),
    [
      [1_400_000, false],
      [1, true],
    ],
  );
});

test("a line as JSON has its time apart", () => {
  const where = { namespace: "a", pod: "b", container: "c" };
  const line = logLineJson(where, { bytes: Buffer.from("2026-11-17T09:00:00.1Z hello  you\r"), isEnd: true });
  const { time, message, goesOn } = JSON.parse(line);
  assert.deepEqual([time, message, goesOn], ["2026-11-17T09:00:00.1Z", "hello  you\r", undefined]);
});

test("characters and line ends that are cut in two are shown whole; what would steer a terminal is spelt out", () => {
  const stream = new VisibleStream();
  const bytes = Buffer.from("ä\r\nprogress\r50 %\x1b[2J\r");
  const shown = [...bytes].map((byte) => stream.show(Buffer.from([byte]))).join("");
  assert.equal(shown + stream.end(), "ä\nprogress^M50 %^[[2J^M");
});
