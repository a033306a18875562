import assert from "node:assert/strict";
import { test } from "node:test";
import { killsByPod } from "./kills-by-pod.ts";

function* killsOf(pod: string): Generator<readonly [string, number]> {
  if (pod === "gone") throw Object.assign(new Error("no such directory"), { code: "ENOENT" });
  if (pod === "odd") throw Object.assign(new Error("input/output error"), { code: "EIO" });
  yield [pod, 1];
}

test("a pod whose cgroup is gone is passed over", () => {
  assert.deepEqual(
    [...killsByPod(["a", "gone", "b"], killsOf)],
    [
      ["a", 1],
      ["b", 1],
    ],
  );
});

test("a pod that can't be asked is said when all others are counted", () => {
  const seen: string[] = [];
  assert.throws(() => {
    for (const [id] of killsByPod(["a", "odd", "gone", "b"], killsOf)) seen.push(id);
  }, /input\/output error/);
  assert.deepEqual(seen, ["a", "b"]);
});
