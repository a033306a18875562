// The runtime is killed and comes back, again and again: pods do not notice, what ended meanwhile is seen.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { isReady } from "../support/agent.ts";
import { conditionOf, statusOf, TestNode } from "../support/test-node.ts";

const rounds = 4;
const podCount = 20;

test(`containerd is killed ${rounds} times under ${podCount} pods`, { timeout: 240_000 }, async (t) => {
  await using node = await TestNode.start();
  const { agent, containerd } = node;
  const probe = { exec: { command: ["true"] }, periodSeconds: 1 };
  const names = Array.from({ length: podCount }, (_, index) => `pod-${index}`);
  for (const [index, name] of names.entries()) {
    // A quarter of them is asked through the runtime whether it is well.
    const probes = index % 4 === 0 ? { livenessProbe: { ...probe, failureThreshold: 1 }, readinessProbe: probe } : {};
    const side = index % 5 === 0 ? [node.server("side", { restartPolicy: "Always" })] : [];
    await agent.apply(name, { initContainers: side, containers: [node.server("main", probes)] });
  }
  for (const name of names) await agent.until(name, "ready", isReady);
  const before = new Map<string, Pod>();
  for (const name of names) before.set(name, (await agent.pod(name)) as Pod);
  const downMs: number[] = [];

  for (let round = 0; round < rounds; round++) {
    const victim = names[round] as string;
    const victimPid = await pidOf(node, before.get(victim) as Pod);
    const began = systemClock.monotonic();
    await containerd.kill9();
    // What ends while nobody looks must be started again; nothing else may be.
    process.kill(victimPid, "SIGKILL");
    await agent.apply(`late-${round}`, { containers: [node.server("main")] });
    await systemClock.sleep(round * 300, AbortSignal.timeout(10_000));
    await containerd.restart();
    downMs.push(Math.round(systemClock.monotonic() - began));
    await agent.until(`late-${round}`, "ready", isReady);
    const count = (was: Pod): number => statusOf(was, "main").restartCount;
    const restarted = await agent.until(
      victim,
      "started again",
      (pod) => isReady(pod) && count(pod) === count(before.get(victim) as Pod) + 1,
    );
    before.set(victim, restarted);
    for (const name of names) {
      const now = await agent.until(name, "ready", isReady);
      assert.deepEqual(identity(now), identity(before.get(name) as Pod), `${name} after kill ${round + 1}`);
    }
  }
  t.diagnostic(`containerd was away for ${downMs.join(", ")} ms`);
});

function identity(pod: Pod): unknown {
  const { initContainerStatuses = [], containerStatuses = [], conditions = [] } = pod.status ?? {};
  return {
    ready: [conditionOf(pod, "Ready"), conditions.find(({ type }) => type === "Ready")?.lastTransitionTime],
    containers: [...initContainerStatuses, ...containerStatuses].map(({ containerID, restartCount }) => [
      containerID,
      restartCount,
    ]),
  };
}

async function pidOf(node: TestNode, pod: Pod): Promise<number> {
  const [instance] = await node.instances(pod, "main");
  const { info } = await node.cri.runtime.containerStatus({ containerId: instance?.id ?? "", verbose: true });
  const { pid } = JSON.parse(info["info"] ?? "{}");
  assert.ok(typeof pid === "number" && pid > 1);
  return pid;
}
