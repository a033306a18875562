import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../ground/base/index.ts";
import { cgroupDriverOf } from "./cgroup-driver.ts";
import { CriError } from "./errors.ts";
import { CgroupDriver, RuntimeConfigResponse } from "./gen/index.ts";

type Answer = RuntimeConfigResponse | Error;

function ask(answers: Answer[]) {
  const clock = new FakeClock();
  let asked = 0;
  const runtime = {
    async runtimeConfig(): Promise<RuntimeConfigResponse> {
      const answer = answers[Math.min(asked++, answers.length - 1)];
      if (answer === undefined || answer instanceof Error) throw answer;
      return answer;
    },
  };
  const driver = cgroupDriverOf({ runtime, clock, log: silentLogger }, new AbortController().signal);
  return { clock, driver, asked: () => asked };
}

const unavailable = new CriError("Unavailable", "runtimeConfig", "no connection");

for (const { name, answer, want } of [
  { name: "systemd", answer: { linux: { cgroupDriver: CgroupDriver.SYSTEMD } }, want: "systemd" },
  { name: "cgroupfs", answer: { linux: { cgroupDriver: CgroupDriver.CGROUPFS } }, want: "cgroupfs" },
  { name: "nothing about linux", answer: {}, want: undefined },
] as const) {
  test(`the runtime says ${name}`, async () => {
    assert.equal(await ask([RuntimeConfigResponse.fromPartial(answer)]).driver, want);
  });
}

test("a runtime that does not know the question leaves the configured driver, asked once", async () => {
  const { driver, asked } = ask([new CriError("Unimplemented", "runtimeConfig", "unknown method")]);
  assert.equal(await driver, undefined);
  assert.equal(asked(), 1);
});

for (const failure of [
  unavailable,
  new CriError("Internal", "runtimeConfig", "cannot tell"),
  new CriError("DeadlineExceeded", "runtimeConfig", "context deadline exceeded"),
]) {
  test(`a runtime that answers ${failure.code} is asked again every two seconds until it tells`, async () => {
    const { driver, asked, clock } = ask([
      ...Array.from({ length: 100 }, () => failure),
      RuntimeConfigResponse.fromPartial({ linux: { cgroupDriver: CgroupDriver.SYSTEMD } }),
    ]);
    await clock.advance(1_999);
    assert.equal(asked(), 1);
    await clock.advance(1);
    assert.equal(asked(), 2);
    await clock.advance(198_000);
    assert.equal(await driver, "systemd");
    assert.equal(asked(), 101);
  });
}

test("what is no answer of the runtime rises at once", async () => {
  const { driver, asked } = ask([new TypeError("a mistake of ours")]);
  await assert.rejects(driver, TypeError);
  assert.equal(asked(), 1);
});

test("a failure that heals in between is forgotten", async () => {
  const { driver, clock } = ask([
    unavailable,
    RuntimeConfigResponse.fromPartial({ linux: { cgroupDriver: CgroupDriver.CGROUPFS } }),
  ]);
  await clock.advance(2_000);
  assert.equal(await driver, "cgroupfs");
});
