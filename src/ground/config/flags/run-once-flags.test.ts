import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { readRunOnceArgs } from "./run-once-flags.ts";

describe("run-once arguments", () => {
  for (const [argv, wanted] of [
    [["--config=x"], { timeoutMs: 300_000, argv: ["--config=x"] }],
    [["--timeout=7", "--config", "x"], { timeoutMs: 7_000, argv: ["--config", "x"] }],
    [["--config", "x", "--timeout", "0.5"], { timeoutMs: 500, argv: ["--config", "x"] }],
    [["--timeout=soon"], undefined],
    [["--timeout"], undefined],
    [["--timeout=0"], undefined],
  ] as const) {
    test(argv.join(" "), () => assert.deepEqual(readRunOnceArgs(argv), wanted));
  }
});
