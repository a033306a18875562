import assert from "node:assert/strict";
import { test } from "node:test";
import { type RolloutAnswer, trialProgress } from "./config-trial-text.ts";

const before: RolloutAnswer = { active: { version: "a" }, error: "", isFollowed: true, refused: [], history: [] };
const trial = { version: "t", remainingMs: 1_000, mustBeKept: true };
const active = { version: "t" };

for (const [name, report, hasBegun, want] of [
  ["nobody answers", undefined, true, /^under way: the agent does not answer/],
  ["it has not begun", before, false, /^under way: it has not begun/],
  ["the agent is restarting", { ...before, trial }, true, /^under way: the agent is restarting/],
  ["something is missing", { ...before, active, trial, missing: "runtime: gone" }, true, /^under way: runtime: gone/],
  ["it works", { ...before, active, trial }, true, /^works: 1000/],
  ["somebody kept it", { ...before, active, good: active }, true, /^kept/],
  ["the files have changed", { ...before, trial: { ...trial, version: "f" } }, true, /^over: it had to make way/],
  ["it can't be saved", { ...before, refused: [{ version: "t", why: "no space" }] }, false, /^over: .*no space/],
] as const) {
  test(`a trial that is waited for: ${name}`, () => {
    const progress = trialProgress("t", report, hasBegun);
    const detail = progress.is === "works" ? progress.remainingMs : progress.is === "kept" ? "" : progress.why;
    assert.match(`${progress.is}: ${detail}`, want);
  });
}
