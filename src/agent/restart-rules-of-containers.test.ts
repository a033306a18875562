// Restart policies and rules of single containers, on virtual time over the simulated runtime.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { dirname } from "node:path";
import { describe, test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import type { Container, PodCondition } from "../ground/model/index.ts";

const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image: "busybox:1", ...more });
const on = (action: string, ...values: readonly number[]) => [{ action, exitCodes: { operator: "In", values } }];
const conditionOf = (node: TestEngine, uid: string, wanted: string): PodCondition | undefined =>
  node.status(uid).conditions?.find(({ type }) => type === wanted);

describe("rules for exit codes", () => {
  test("a pod that runs once starts a container again after the code that its rule names, and fails after another", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("main", exitsAfter(1_000, 42), exitsAfter(1_000, 42), exitsAfter(1_000, 1));
    const main = container("main", { restartPolicy: "Never", restartPolicyRules: on("Restart", 42) });
    await node.want(enginePod("job", { restartPolicy: "Never", containers: [main] }));
    await node.until("it has failed", () => node.phase("job") === "Failed");
    assert.equal(node.container("job", "main").restartCount, 2);
    assert.equal(node.container("job", "main").state?.terminated?.exitCode, 1);
  });

  test("the pod runs on while one container starts again by its rule and the other has ended for good", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("done", exitsAfter(500, 3));
    node.runtime.behave("main", exitsAfter(1_000, 42), exitsAfter(1_000, 42), exitsAfter(600_000, 0));
    const main = container("main", { restartPolicy: "Never", restartPolicyRules: on("Restart", 42) });
    await node.want(enginePod("job", { restartPolicy: "Never", containers: [container("done"), main] }));
    await node.until("it is back", () => node.container("job", "main").restartCount === 2);
    assert.equal(node.phase("job"), "Running");
    assert.equal(node.container("job", "done").restartCount, 0);
    await node.until("all have ended", () => node.phase("job") === "Failed", 700_000);
  });

  test("a container with the policy Never stays down in a pod that restarts its others", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("once", exitsAfter(1_000, 1));
    node.runtime.behave("main", exitsAfter(2_000, 1));
    await node.want(
      enginePod("web", { containers: [container("main"), container("once", { restartPolicy: "Never" })] }),
    );
    await node.until("main is back", () => node.container("web", "main").restartCount === 2);
    assert.equal(node.container("web", "once").restartCount, 0);
    assert.equal(node.container("web", "once").state?.terminated?.exitCode, 1);
    assert.equal(node.phase("web"), "Running");
  });

  test("an init container is tried again by its rule, although its pod runs once", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("setup", exitsAfter(1_000, 42), exitsAfter(1_000, 0));
    const setup = container("setup", { restartPolicy: "Never", restartPolicyRules: on("Restart", 42) });
    await node.want(enginePod("job", { restartPolicy: "Never", initContainers: [setup] }));
    await node.until("main runs", () => node.running().includes("job/main"));
    assert.equal(node.container("job", "setup").restartCount, 1);
  });

  test("an init container that fails by its own policy ends a pod that restarts everything else", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("setup", exitsAfter(1_000, 1));
    await node.want(enginePod("web", { initContainers: [container("setup", { restartPolicy: "Never" })] }));
    await node.until("it has failed", () => node.phase("web") === "Failed");
    assert.equal(node.container("web", "setup").restartCount, 0);
  });
});

describe("a rule that restarts all containers", () => {
  const trigger = container("trainer", { restartPolicy: "Never", restartPolicyRules: on("RestartAllContainers", 42) });
  const job = () =>
    enginePod("job", {
      restartPolicy: "Never",
      initContainers: [container("setup"), container("side", { restartPolicy: "Always" })],
      containers: [trigger, container("helper")],
    });

  test("everything starts anew in the same sandbox, counted once, from the first init container on", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("setup", exitsAfter(500, 0));
    await node.want(job());
    await node.until("all run", () => node.running().length === 3);
    const [sandbox] = node.runtime.sandboxes();
    const told = new Set<string | undefined>();
    node.engine.statuses.onChange(() => void told.add(conditionOf(node, "job", "AllContainersRestarting")?.reason));
    node.runtime.exit("trainer", 42);
    await node.until(
      "all run again",
      () => node.running().length === 3 && node.container("job", "helper").restartCount === 1,
    );
    assert.deepEqual(node.running(), ["job/helper", "job/side", "job/trainer"]);
    assert.ok(told.has("RestartAllContainersStarted"));
    assert.deepEqual(
      node.runtime.sandboxes().map(({ id }) => id),
      [sandbox?.id],
    );
    for (const name of ["setup", "side", "trainer", "helper"]) {
      assert.equal(node.container("job", name).restartCount, 1, name);
    }
    assert.equal(node.container("job", "trainer").lastState?.terminated?.exitCode, 42);
    const { exitCode, reason } = node.container("job", "helper").lastState?.terminated ?? {};
    assert.deepEqual([exitCode, reason], [137, "RestartingAllContainers"]);
    assert.equal(conditionOf(node, "job", "AllContainersRestarting")?.status, "False");
    assert.equal(conditionOf(node, "job", "Initialized")?.status, "True");
    assert.equal(node.phase("job"), "Running");
  });

  test("what containers said last is kept, and nothing of what they said before", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("setup", exitsAfter(500, 0));
    node.runtime.behave("trainer", exitsAfter(1_000, 42));
    await node.want(job());
    const logs = (name: string): readonly string[] => {
      const [found] = node.runtime.containers().filter(({ config }) => config.metadata?.name === name);
      return found === undefined ? [] : readdirSync(dirname(found.logPath)).sort();
    };
    await node.until(
      "one round",
      () => node.container("job", "trainer").restartCount === 1 && logs("helper").length > 1,
    );
    for (const name of ["trainer", "helper", "side", "setup"]) assert.deepEqual(logs(name), ["0.log", "1.log"], name);
    await node.until("three rounds", () => node.container("job", "trainer").restartCount === 3);
    await node.until("it runs", () => node.running().includes("job/trainer"));
    for (const name of ["trainer", "helper", "side", "setup"]) assert.deepEqual(logs(name), ["2.log", "3.log"], name);
  });

  test("the pod never looks ended or pending on the way, and keeps to the back-off when it happens again and again", async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("setup", exitsAfter(500, 0));
    node.runtime.behave("trainer", exitsAfter(1_000, 42));
    const phases = new Set<string | undefined>();
    node.engine.statuses.onChange((_, { phase }) => void phases.add(phase));
    await node.want(job());
    await node.until("it runs", () => node.phase("job") === "Running");
    phases.clear();
    await node.until("three rounds", () => node.container("job", "trainer").restartCount === 3);
    await node.until("it waits", () => node.container("job", "trainer").state?.waiting?.reason === "CrashLoopBackOff");
    assert.deepEqual([...phases], ["Running"]);
    const before = node.calls();
    await node.advance(20_000);
    assert.ok(node.calls() - before < 50, `${node.calls() - before} calls while it waits`);
  });

  test("an agent that is ended at any call on the way brings it to its end", async () => {
    for (let nth = 1; nth <= 12; nth++) {
      await using node = await TestEngine.start();
      node.runtime.behave("setup", exitsAfter(500, 0));
      await node.want(job());
      await node.until("all run", () => node.running().length === 3);
      const before = node.calls();
      node.runtime.exit("trainer", 42);
      for (let steps = 0; steps < 2_000 && node.calls() < before + nth; steps++) await node.clock.advance(1);
      await node.restart();
      await node.until(
        `all run again, agent ended at call ${nth}`,
        () => node.running().length === 3 && node.container("job", "trainer").restartCount === 1,
      );
      await node.advance(60_000);
      for (const name of ["setup", "side", "trainer", "helper"]) {
        assert.equal(node.container("job", name).restartCount, 1, `${name}, agent ended at call ${nth}`);
      }
      assert.equal(node.phase("job"), "Running", `agent ended at call ${nth}`);
    }
  });

  test("a pod that is being deleted is not started anew", async () => {
    await using node = await TestEngine.start({ source: "api" });
    node.runtime.behave("setup", exitsAfter(500, 0));
    await node.want(job());
    await node.until("all run", () => node.running().length === 3);
    const { metadata, ...rest } = job();
    const deletionTimestamp = new Date(node.clock.now()).toISOString();
    await node.want({ ...rest, metadata: { ...metadata, deletionTimestamp, deletionGracePeriodSeconds: 5 } });
    await node.advance(60_000);
    assert.deepEqual(node.running(), []);
  });
});
