// Processes that the kernel kills for want of memory, as users of their pods see it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { isOver, statusOf, TestNode } from "../support/test-node.ts";
import { until } from "../support/until.ts";

let node: TestNode;
before(async () => {
  node = await TestNode.start();
});
after(() => node?.[Symbol.asyncDispose]());

const greedy = (name: string, script: string) => ({
  ...node.shell(name, script),
  resources: { limits: { memory: "24Mi" } },
});
/** Events of the pod that tell of a kill; without an API server they go to the log. */
const told = (pod: string): readonly string[] =>
  readFileSync(node.agent.logFile, "utf8")
    .split("\n")
    .filter((line) => line.includes('reason="OOMKilling"') && line.includes(`${pod}-`));

test("a container whose first process was killed ends as OOMKilled, and its users are told of the process", async () => {
  await node.agent.apply("main-killed", {
    restartPolicy: "Never",
    containers: [greedy("main", "exec tail /dev/zero")],
  });
  const pod = await node.agent.until("main-killed", "over", isOver);
  const end = statusOf(pod, "main").state?.terminated;
  assert.deepEqual([pod.status?.phase, end?.reason, end?.exitCode], ["Failed", "OOMKilled", 137]);
  await until("its users are told", () => told("main-killed").length > 0);
  assert.match(
    told("main-killed")[0] ?? "",
    /Process tail \(pid \d+\) of container main was killed because memory ran out/,
  );
});

test("a container of which only a child was killed ends as OOMKilled too, whatever its exit code", async () => {
  const containers = [greedy("main", "tail /dev/zero; sleep 1; exit 0")];
  await node.agent.apply("child-killed", { restartPolicy: "Never", containers });
  const pod = await node.agent.until("child-killed", "over", isOver);
  const end = statusOf(pod, "main").state?.terminated;
  assert.deepEqual([pod.status?.phase, end?.reason, end?.exitCode], ["Succeeded", "OOMKilled", 0]);
});

test("a container that goes on without its child runs on; it is told of once, also by the next agent", async () => {
  await node.agent.apply("goes-on", { containers: [greedy("main", "tail /dev/zero; sleep 100000")] });
  await until("its users are told", () => told("goes-on").length > 0);
  const pod = await node.agent.until(
    "goes-on",
    "running",
    (seen) => statusOf(seen, "main").state?.running !== undefined,
  );
  assert.equal(statusOf(pod, "main").restartCount, 0);
  const before = told("").length;
  await node.agent.kill9();
  await node.agent.launch();
  await node.agent.apply("afterwards", { restartPolicy: "Never", containers: [greedy("main", "exec tail /dev/zero")] });
  await until("a new kill is told of", () => told("afterwards").length > 0);
  assert.equal(told("").length, before + 1);
  assert.equal(told("goes-on").length, 1);
  assert.doesNotMatch(readFileSync(node.agent.logFile, "utf8"), /SystemOOM/);
});
