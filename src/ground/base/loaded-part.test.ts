import assert from "node:assert/strict";
import { test } from "node:test";
import { loadedPart, partsLost } from "./index.ts";

const failing = async (code: string): Promise<never> => {
  throw Object.assign(new Error(code), { code });
};

test("a part that was loaded is what was imported", async () => {
  assert.equal((await loadedPart(import("node:path"))).sep, "/");
});

for (const [code, isLost] of [
  ["EMFILE", true],
  ["ENFILE", true],
  ["ENOMEM", true],
  ["ERR_MODULE_NOT_FOUND", false],
] as const) {
  test(`a part that could not be loaded (${code}) is ${isLost ? "lost for good" : "a defect of its own"}`, async () => {
    const lost: unknown[] = [];
    const stop = partsLost.on((error) => lost.push(error));
    try {
      await assert.rejects(loadedPart(failing(code)), { code });
      assert.equal(lost.length, isLost ? 1 : 0);
    } finally {
      stop();
    }
  });
}
