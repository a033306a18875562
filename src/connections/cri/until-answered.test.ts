import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../ground/base/index.ts";
import { CriError } from "./errors.ts";
import { untilAnswered } from "./until-answered.ts";

const gone = new CriError("Unavailable", "status", "read ECONNRESET");

function question(failures: number, error: unknown = gone, signal = new AbortController().signal) {
  const clock = new FakeClock();
  let asked = 0;
  const ask = async (): Promise<string> => {
    if (asked++ < failures) throw error;
    return "here";
  };
  const answer = untilAnswered("are you there", ask, { clock, log: silentLogger }, signal);
  return { clock, answer, asked: () => asked };
}

test("a runtime that goes for an hour is waited for, ever more patiently", async () => {
  const { clock, answer, asked } = question(300);
  await clock.advance(60_000);
  assert.ok(asked() > 5 && asked() < 15, `${asked()} times`);
  await clock.advance(3_600_000);
  assert.equal(await answer, "here");
});

test("an end of the agent ends the wait", async () => {
  const stop = new AbortController();
  const { clock, answer } = question(Number.POSITIVE_INFINITY, gone, stop.signal);
  const outcome = assert.rejects(answer, /enough/);
  await clock.advance(1_000);
  stop.abort(new Error("enough"));
  await clock.advance(20_000);
  await outcome;
});

test("an error that the runtime did not give rises at once", async () => {
  await assert.rejects(question(1, new TypeError("a defect")).answer, /a defect/);
});

test("a runtime that does not know the call is not asked for ever", async () => {
  const unknown = new CriError("Unimplemented", "listImages", "unknown service runtime.v1.ImageService");
  const { clock, answer, asked } = question(Number.POSITIVE_INFINITY, unknown);
  const outcome = assert.rejects(answer, /unknown service/);
  await clock.advance(60_000);
  await outcome;
  assert.equal(asked(), 1);
});
