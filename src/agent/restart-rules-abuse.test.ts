// Restart rules that nobody should write, and some do: on virtual time over the simulated runtime.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import type { Container } from "../ground/model/index.ts";

type Rules = NonNullable<Container["restartPolicyRules"]>;

const hourMs = 3_600_000;
const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "busybox:1", ...more });
const ruled = (name: string, restartPolicyRules: Rules, restartPolicy = "Never"): Container =>
  container(name, { restartPolicy, restartPolicyRules });
const rule = (action: string, operator: string, ...values: readonly number[]): Rules[number] => ({
  action,
  exitCodes: { operator, values },
});
const restartAll = [rule("RestartAllContainers", "In", 42)];
const restartsOf = (node: TestEngine, uid: string): Readonly<Record<string, number>> => {
  const { initContainerStatuses = [], containerStatuses = [] } = node.status(uid);
  const all = [...initContainerStatuses, ...containerStatuses];
  return Object.fromEntries(all.map(({ name, restartCount }) => [name, restartCount]));
};

/** With delays of 10 s, 20 s and so on up to 5 minutes, half an hour has room for so many restarts. */
const mostInHalfAnHour = 12;

test("of hundreds of rules for the same codes the first one counts, whatever stands around it", async () => {
  await using node = await TestEngine.start();
  const nonsense = Array.from({ length: 300 }, (_, index) => [
    rule("Restart", ["Gt", "", "Exists", "in"][index % 4] ?? "", 42),
    rule(["Explode", "", "restart"][index % 3] ?? "", "In", 42),
    { action: "Restart" },
    rule("Restart", "In", ...Array.from({ length: 255 }, (_, code) => (code === 42 ? 0 : code))),
  ]).flat();
  const rules = [...nonsense, rule("RestartAllContainers", "In", 42), rule("Restart", "NotIn"), ...nonsense];
  node.runtime.behave("first", exitsAfter(1_000, 42), exitsAfter(hourMs, 0));
  node.runtime.behave("second", exitsAfter(1_000, 7), exitsAfter(hourMs, 0));
  await node.want(
    enginePod("all", { restartPolicy: "Never", containers: [ruled("first", rules), container("beside-first")] }),
    enginePod("one", { restartPolicy: "Never", containers: [ruled("second", rules), container("beside-second")] }),
  );
  await node.until(
    "both are back",
    () => node.running().length === 4 && node.container("one", "second").restartCount > 0,
  );
  await node.until("all of the first are back", () => node.container("all", "beside-first").restartCount > 0);
  await node.advance(60_000);
  assert.deepEqual(restartsOf(node, "all"), { first: 1, "beside-first": 1 });
  assert.deepEqual(restartsOf(node, "one"), { second: 1, "beside-second": 0 });
});

test("operators and actions that nobody knows restart nothing: the policy decides", async () => {
  await using node = await TestEngine.start();
  const rules = [
    rule("Restart", "Gt", 0),
    rule("Explode", "In", 1),
    rule("RestartAllContainers", "notin"),
    { action: "Restart" },
  ];
  for (const name of ["never", "failing", "setup"]) node.runtime.behave(name, exitsAfter(1_000, 1));
  await node.want(
    enginePod("job", { restartPolicy: "Never", containers: [ruled("never", rules)] }),
    enginePod("web", { restartPolicy: "Never", containers: [ruled("failing", rules, "OnFailure")] }),
    enginePod("init", { restartPolicy: "Never", initContainers: [ruled("setup", rules)] }),
  );
  await node.until("two have failed", () => node.phase("job") === "Failed" && node.phase("init") === "Failed");
  await node.until("one is started again", () => node.container("web", "failing").restartCount === 2);
  assert.deepEqual([restartsOf(node, "job"), restartsOf(node, "init")], [{ never: 0 }, { setup: 0, main: 0 }]);
});

describe("what starts all containers anew for ever is slowed down, and harms nobody else", () => {
  const neighbour = enginePod("neighbour", { containers: [container("calm")] });
  for (const { who, spec, runs, culprits = 1 } of [
    { who: "a container", spec: { containers: [ruled("culprit", restartAll), container("other")] }, runs: 2 },
    {
      who: "a sidecar",
      spec: { initContainers: [ruled("culprit", restartAll, "Always")], containers: [container("other")] },
      runs: 2,
    },
    {
      who: "an init container",
      spec: { initContainers: [container("setup"), ruled("culprit", restartAll)], containers: [container("other")] },
      runs: 1,
    },
    {
      who: "two at the same moment",
      spec: { containers: [ruled("culprit", restartAll), ruled("second", restartAll)] },
      runs: 2,
      // Each has a back-off of its own.
      culprits: 2,
    },
  ]) {
    test(who, async () => {
      await using node = await TestEngine.start();
      node.runtime.behave("setup", exitsAfter(100, 0));
      for (const name of ["culprit", "second"]) node.runtime.behave(name, exitsAfter(1_000, 42));
      await node.want(neighbour, enginePod("job", { restartPolicy: "Never", ...spec }));
      await node.until("it happens", () => (restartsOf(node, "job")["culprit"] ?? 0) > 0);
      const before = node.calls();
      await node.advance(hourMs / 4);
      // An agent that starts anew must not be a way around the back-off.
      await node.restart();
      await node.advance(hourMs / 4);
      const { culprit: count = 0, ...others } = restartsOf(node, "job");
      assert.ok(count >= 6 && count <= mostInHalfAnHour * culprits, `${count} restarts in half an hour`);
      for (const other of Object.values(others)) assert.ok(other === count || other === 0, JSON.stringify(others));
      assert.ok(node.calls() - before < 2_000, `${node.calls() - before} calls in half an hour`);
      assert.notEqual(node.phase("job"), "Failed");
      assert.deepEqual(restartsOf(node, "neighbour"), { calm: 0 });
      for (const name of ["culprit", "second"]) {
        node.runtime.behave(name, who === "an init container" ? exitsAfter(1_000, 0) : exitsAfter(hourMs, 0));
      }
      await node.until("it comes to rest", () => node.running().length === runs + 1);
      await node.advance(600_000);
      assert.equal(node.phase("job"), "Running");
    });
  }
});

test("a sidecar whose end asks for all anew does not bring back a pod that has done its work", async () => {
  await using node = await TestEngine.start();
  node.runtime.behave("main", exitsAfter(1_000, 0));
  node.runtime.behave("side", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: [{ do: "exit", code: 42 }] });
  const side = ruled("side", restartAll, "Always");
  await node.want(
    enginePod("job", { restartPolicy: "Never", initContainers: [side], containers: [container("main")] }),
  );
  await node.until("it has ended", () => node.phase("job") === "Succeeded");
  await node.advance(60_000);
  assert.deepEqual(restartsOf(node, "job"), { side: 0, main: 0 });
  assert.deepEqual(node.running(), []);
});

test("a job that its rule starts again even after success never ends, and waits longer each time", async () => {
  await using node = await TestEngine.start();
  node.runtime.behave("main", exitsAfter(1_000, 0));
  await node.want(
    enginePod("job", { restartPolicy: "Never", containers: [ruled("main", [rule("Restart", "NotIn")])] }),
  );
  await node.advance(hourMs / 2);
  const { main: count = 0 } = restartsOf(node, "job");
  assert.ok(count >= 6 && count <= mostInHalfAnHour, `${count} restarts in half an hour`);
  assert.equal(node.phase("job"), "Running");
});
