import assert from "node:assert/strict";
import { test } from "node:test";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { cutBytes, cutText } from "./cut-text.ts";

test("what fits stays as it is, what does not is cut between characters", () => {
  assert.equal(cutText("abc", 3), "abc");
  assert.equal(cutText("abcd", 3), "abc");
  assert.equal(cutText("aé", 2), "a");
  assert.equal(cutText("a€", 3), "a");
  assert.equal(cutText("a😀", 4), "a");
  assert.equal(cutText("a😀b", 5), "a😀");
  assert.equal(cutText("abc", 0), "");
  assert.equal(cutBytes(Buffer.from("€€"), 5), "€");
});

const seed = Number(process.env["NODELET_SEED"] ?? Math.floor(Math.random() * 1e9));

test(`any text and any limit: never longer, always a beginning (NODELET_SEED=${seed})`, () => {
  const random = seededRandom(seed);
  const characters = ["a", "é", "€", "😀", "\0", "\n", '"'];
  for (let round = 0; round < 2_000; round++) {
    const text = Array.from(
      { length: Math.floor(random() * 20) },
      () => characters[Math.floor(random() * characters.length)],
    ).join("");
    const limit = Math.floor(random() * 40);
    for (const cut of [cutText(text, limit), cutBytes(Buffer.from(text), limit)]) {
      assert.ok(Buffer.byteLength(cut) <= limit, `${JSON.stringify(text)} cut to ${limit}`);
      assert.ok(text.startsWith(cut));
      assert.ok(Buffer.byteLength(cut) > limit - 4 || cut === text, "no more is left out than one character");
    }
    // Bytes that are no text at all.
    const noise = Buffer.from(Array.from({ length: 30 }, () => Math.floor(random() * 256)));
    assert.ok(cutBytes(noise, limit).length <= limit);
  }
});
