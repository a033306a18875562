import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { DirectoryInUseError } from "../../../connections/host/index.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import { PluginListener } from "./plugin-listener.ts";

test("the listener of device plugins is tried until it opens, and says once what keeps it from that", async () => {
  const clock = new FakeClock();
  await using scope = new TaskScope();
  const said: string[] = [];
  const health: string[] = [];
  const problems = [new DirectoryInUseError("/d", 7), new DirectoryInUseError("/d", 7), new Error("no space")];
  let isClosed = false;
  const listener = new PluginListener({
    clock,
    log: { ...silentLogger, error: (message) => void said.push(message) },
    health: { report: (name, { state }) => void health.push(`${name} ${state}`) },
    directory: "/d",
    async open() {
      const problem = problems.shift();
      if (problem !== undefined) throw problem;
      return {
        wereThere: false,
        async [Symbol.asyncDispose]() {
          isClosed = true;
        },
      };
    },
  });
  await listener.open(scope);
  assert.equal(listener.wereThere, true, "not known yet");
  for (let tries = 0; tries < 3; tries++) await clock.advance(5_000);
  assert.deepEqual(health, [
    "device-plugin waiting",
    "device-plugin waiting",
    "device-plugin failed",
    "device-plugin ok",
  ]);
  assert.equal(said.length, 2, "the same problem is said once");
  assert.equal(listener.wereThere, false);
  await scope.stop();
  assert.equal(isClosed, true);
});
