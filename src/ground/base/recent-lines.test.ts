import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { RecentLines } from "./recent-lines.ts";

/** As an agent writes them; the longest events have several hundred characters. */
function line(number: number): string {
  const uid = createHash("sha256").update(String(number)).digest("hex").slice(0, 36);
  const message = 'message="Pod resize completed: {\\"containers\\":[{\\"name\\":\\"main\\",\\"resources\\":{}}]}"';
  return `I1117 13:47:25.885000 13213 events:0] "Event occurred" object="web-${number}(${uid})" ${message.repeat(4)}`;
}

test("the last 1,000 lines are kept, as they were and in order, however long usual ones are", () => {
  const recent = new RecentLines();
  const all = Array.from({ length: 3_333 }, (_, number) => line(number));
  for (const each of all) recent.add(`${each}\n`);
  assert.ok((all[0]?.length ?? 0) > 400);
  assert.deepEqual(recent.all(), all.slice(-1_000));
});

test("fewer lines are all there, from the first on", () => {
  const recent = new RecentLines();
  assert.deepEqual(recent.all(), []);
  for (let number = 0; number < 70; number++) recent.add(`${number}\0é\n`);
  assert.deepEqual(
    recent.all(),
    Array.from({ length: 70 }, (_, number) => `${number}é`),
  );
});

test("lines that can't be packed are cut and let go, the oldest first", () => {
  const recent = new RecentLines(1_000, 100_000);
  const noise = (number: number): string =>
    Array.from({ length: 400 }, (_, part) => createHash("sha512").update(`${number} ${part}`).digest("base64")).join(
      "",
    );
  for (let number = 0; number < 40; number++) recent.add(noise(number));
  const kept = recent.all();
  assert.ok(kept.length >= 5 && kept.length <= 10, String(kept.length));
  assert.equal(kept.at(-1), noise(39).slice(0, 16 * 1024));
});
