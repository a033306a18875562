// The agent ends again and again, by kill -9, SIGTERM and a change of the binary, while the API and the runtime fail too:
// its pods must not notice. The long form is `npm run prove:restarts`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { proveRestarts } from "../support/restart-proof/prove.ts";

const seed = Number(process.env["NODELET_SEED"] ?? Date.now() % 1_000_000);

test(`the agent ends 8 times among 15 pods (NODELET_SEED=${seed})`, { timeout: 280_000 }, async (t) => {
  const { incidents, ...figures } = await proveRestarts({
    seed,
    pods: 15,
    endings: { "kill -9": 6, SIGTERM: 1, "another binary": 1 },
    report: (line) => t.diagnostic(line),
  });
  t.diagnostic(JSON.stringify(figures));
  assert.deepEqual(incidents, []);
});
