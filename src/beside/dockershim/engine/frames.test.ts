import assert from "node:assert/strict";
import { test } from "node:test";
import { FrameReader } from "./frames.ts";

test("frames may be split anywhere", () => {
  const bytes = Buffer.from("0100000000000003616263" + "020000000000000178" + "0100000000000000", "hex");
  for (let at = 0; at <= bytes.length; at++) {
    const reader = new FrameReader();
    const texts = { stdin: "", stdout: "", stderr: "" };
    for (const part of [bytes.subarray(0, at), bytes.subarray(at)]) {
      for (const { stream, content } of reader.push(part)) texts[stream] += content.toString();
    }
    assert.deepEqual(texts, { stdin: "", stdout: "abc", stderr: "x" });
  }
});

test("what is no frame is refused", () => {
  assert.throws(() => new FrameReader().push(Buffer.from("hello there")), /where a frame should begin/);
});
