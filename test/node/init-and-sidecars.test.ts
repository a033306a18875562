// Init containers and native sidecars: who starts when, who stops when, and what happens when one fails.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Container } from "../../src/ground/model/index.ts";
import { answerMs, eventually, isReady } from "../support/agent.ts";
import { conditionOf, idOf, isOver, statusOf, TestNode, type Trace } from "../support/test-node.ts";

describe("init containers and sidecars", { concurrency: 6 }, () => {
  let node: TestNode;
  before(async () => {
    node = await TestNode.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  /** Writes down its name, then does what the script says. */
  const tracing = (trace: Trace, name: string, script = "", more: Partial<Container> = {}): Container =>
    node.shell(name, `echo ${name} >> /trace/words; ${script}`, { volumeMounts: [trace.mount], ...more });
  /** Writes down when it begins and when it is told to end; ready when it would hear of it. */
  const lasting = (trace: Trace, name: string, more: Partial<Container> = {}, ending = "exit 0"): Container =>
    tracing(trace, name, `trap 'echo ${name} ends >> /trace/words; ${ending}' TERM; touch /up; sleep 1d & wait`, {
      readinessProbe: { exec: { command: ["test", "-e", "/up"] }, periodSeconds: 1 },
      ...more,
    });
  const sidecar = { restartPolicy: "Always" } as const;

  test("init containers run one after the other, then the regular ones", async () => {
    const trace = await node.trace("order");
    await node.agent.apply("order", {
      volumes: [trace.volume],
      initContainers: [tracing(trace, "one", "sleep 1"), tracing(trace, "two", "sleep 1")],
      containers: [lasting(trace, "main")],
    });
    const early = await node.agent.until(
      "order",
      "two runs",
      (pod) => statusOf(pod, "two").state?.running !== undefined,
    );
    assert.equal(early.status?.phase, "Pending");
    assert.equal(conditionOf(early, "Initialized"), "False");
    assert.equal(statusOf(early, "one").state?.terminated?.reason, "Completed");
    assert.equal(statusOf(early, "one").ready, true);
    assert.equal(statusOf(early, "main").state?.waiting?.reason, "PodInitializing");
    const ready = await node.agent.until("order", "ready", isReady);
    assert.equal(conditionOf(ready, "Initialized"), "True");
    assert.deepEqual(await trace.words(), ["one", "two", "main"]);
  });

  test("a failing init container is tried again, and nothing after it starts before it succeeds", async () => {
    const trace = await node.trace("retry");
    const flaky = tracing(trace, "flaky", "[ $(grep -c flaky /trace/words) -ge 2 ]");
    await node.agent.apply("retry", {
      volumes: [trace.volume],
      initContainers: [flaky],
      containers: [lasting(trace, "main")],
    });
    const ready = await node.agent.until("retry", "ready", isReady);
    assert.deepEqual(await trace.words(), ["flaky", "flaky", "main"]);
    const { restartCount, state } = statusOf(ready, "flaky");
    assert.equal(restartCount, 1);
    assert.equal(state?.terminated?.exitCode, 0);
    assert.equal(statusOf(ready, "main").restartCount, 0);
  });

  test("a failing init container under restartPolicy Never ends the pod", async () => {
    const trace = await node.trace("init-never");
    await node.agent.apply("init-never", {
      restartPolicy: "Never",
      volumes: [trace.volume],
      initContainers: [lasting(trace, "side", sidecar), tracing(trace, "broken", "exit 5"), tracing(trace, "never")],
      containers: [lasting(trace, "main")],
    });
    const over = await node.agent.until("init-never", "over", isOver);
    assert.equal(over.status?.phase, "Failed");
    assert.equal(statusOf(over, "broken").state?.terminated?.exitCode, 5);
    assert.equal(conditionOf(over, "Initialized"), "False");
    assert.deepEqual(await trace.words(), ["side", "broken", "side ends"]);
    assert.deepEqual(
      (await node.running()).filter((name) => name.startsWith("init-never")),
      [],
    );
  });

  test("sidecars start in order, each when the one before has started, and stop last, in reverse", async () => {
    const trace = await node.trace("sidecars");
    const startupProbe = { exec: { command: ["test", "-f", "/trace/opened"] }, periodSeconds: 1, failureThreshold: 30 };
    const gate = tracing(
      trace,
      "gate",
      "trap 'echo gate ends >> /trace/words; exit 0' TERM; sleep 2; echo gate opens >> /trace/words; touch /trace/opened; sleep 1d & wait",
      { ...sidecar, startupProbe },
    );
    await node.agent.apply("sidecars", {
      terminationGracePeriodSeconds: 20,
      volumes: [trace.volume],
      initContainers: [gate, tracing(trace, "setup"), lasting(trace, "second", sidecar)],
      containers: [lasting(trace, "main", {}, "sleep 1; echo main ended >> /trace/words; exit 0")],
    });
    await node.agent.until("sidecars", "ready", isReady);
    assert.deepEqual(await trace.words(), ["gate", "gate opens", "setup", "second", "main"]);
    await node.agent.remove("sidecars");
    await node.agent.untilGone("sidecars");
    assert.deepEqual((await trace.words()).slice(5), ["main ends", "main ended", "second ends", "gate ends"]);
  });

  test("a sidecar that ends is started again beside its pod, whatever the pod's policy", async () => {
    const trace = await node.trace("sidecar-crash");
    await node.agent.apply("sidecar-crash", {
      restartPolicy: "Never",
      volumes: [trace.volume],
      initContainers: [lasting(trace, "side", sidecar)],
      containers: [lasting(trace, "main")],
    });
    const before = await node.agent.until("sidecar-crash", "ready", isReady);
    await node.terminate(before, "side");
    const restarted = await node.agent.until(
      "sidecar-crash",
      "the sidecar is back",
      (pod) => statusOf(pod, "side").restartCount === 1 && isReady(pod),
    );
    assert.equal(restarted.status?.phase, "Running");
    assert.equal(conditionOf(restarted, "Initialized"), "True");
    assert.equal(idOf(statusOf(restarted, "main")), idOf(statusOf(before, "main")));
    assert.deepEqual(await trace.words(), ["side", "main", "side ends", "side"]);
  });

  test("a job is over when its work is, however its sidecar ends", async () => {
    const trace = await node.trace("job");
    await node.agent.apply("job", {
      restartPolicy: "Never",
      volumes: [trace.volume],
      initContainers: [lasting(trace, "side", sidecar, "exit 9")],
      containers: [tracing(trace, "work", "sleep 1; echo worked >> /trace/words")],
    });
    const over = await node.agent.until("job", "over", isOver);
    assert.equal(over.status?.phase, "Succeeded");
    assert.deepEqual(await trace.words(), ["side", "work", "worked", "side ends"]);
    assert.equal(statusOf(over, "side").state?.terminated?.exitCode, 9);
    assert.equal(statusOf(over, "side").restartCount, 0);
  });

  test("init containers that are done do not run again when a regular container does", async () => {
    const trace = await node.trace("once");
    await node.agent.apply("once", {
      volumes: [trace.volume],
      initContainers: [tracing(trace, "setup")],
      containers: [tracing(trace, "main", "sleep 1; exit 1")],
    });
    await node.agent.until("once", "restarted", (pod) => statusOf(pod, "main").restartCount === 1);
    await eventually(async () => (await trace.words()).length === 3, "the second main has begun", answerMs);
    assert.deepEqual(await trace.words(), ["setup", "main", "main"]);
  });
});
