// A pod may have as many containers as fit into the API, which are some 20,000. What is reckoned for one of them must
// not take longer the more there are: all of it is done on the event loop, and every other pod waits meanwhile.
import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContext } from "../../test/support/example-context.ts";
import { observedPod, testContainer, testObserved, testPod } from "../../test/support/pods.ts";
import { ProbingAgent } from "../../test/support/probing-agent.ts";
import { containerHash } from "../ground/model/index.ts";
import { sandboxConfig } from "../pod/runtime/index.ts";
import { anywhere } from "../pod/runtime/mapping/context.ts";
import { containerResources } from "../pod/runtime/mapping/resources.ts";
import { computePodStatus } from "../pod/status/index.ts";

const many = 20_000;
const names = Array.from({ length: many }, (_, index) => `c${index}`);

/** Processor time, as the machine may have other things to do. */
async function costMs(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

test("the status of a pod whose many containers all wait, or have all ended", async () => {
  const pod = testPod({ containers: names.map((name) => testContainer(name)) });
  const waiting = { reason: "ErrImagePull", message: "no such image" } as const;
  for (const observed of [
    observedPod({}),
    observedPod({ containers: names.map((name) => testObserved(name, { state: "exited", exitCode: 1 })) }),
  ]) {
    let shown: ReturnType<typeof computePodStatus> | undefined;
    const took = await costMs(() => {
      shown = computePodStatus({
        pod,
        observed,
        previous: undefined,
        flags: { started: () => true, ready: () => true },
        waitingReason: () => waiting,
        terminationText: () => "",
        node: { runtimeName: "containerd", hostIPs: [] },
        now: 0,
        deviceHealth: () => [],
        resize: {
          pending: undefined,
          accepted: undefined,
          given: { to: () => undefined, toPod: () => undefined },
          podLevel: undefined,
          isUnderWay: false,
          error: undefined,
        },
        tornDown: false,
        sandboxReady: true,
      });
    });
    assert.equal(shown?.containerStatuses?.[many - 1]?.state?.waiting?.reason, "ErrImagePull");
    assert.ok(took < 2_000, `took ${took} ms`);
  }
});

test("the description of one container of a pod that has many", async () => {
  const sidecars = names.slice(0, many / 2).map((name) => testContainer(name, { restartPolicy: "Always" }));
  const resources = { requests: { cpu: "1m", memory: "1Mi" } };
  const pod = testPod({
    resources: { requests: { memory: "40Gi" } },
    initContainers: sidecars,
    containers: names.slice(many / 2).map((name) => testContainer(name, { resources })),
  });
  const context = exampleContext();
  const took = await costMs(async () => {
    for (const sidecar of sidecars.slice(0, 300)) {
      const { config } = await sandboxConfig(pod, 0, context);
      assert.equal(config.metadata?.attempt, 0);
      assert.ok(containerResources(pod, sidecar, context, anywhere).oomScoreAdj < 1_000n);
    }
  });
  assert.ok(took < 3_000, `took ${took} ms`);
});

test("probes of many containers are watched and asked", async () => {
  await using agent = new ProbingAgent();
  const probe = { exec: { command: ["true"] }, periodSeconds: 3_600 };
  const probes = { startupProbe: probe, livenessProbe: probe, readinessProbe: probe };
  const pod = testPod({ containers: names.map((name) => testContainer(name, probes)) });
  agent.probes.ensure(pod);
  const uid = pod.metadata.uid as Parameters<typeof agent.probes.observe>[0];
  const containers = new Map(names.map((name) => [name, testObserved(name)]));
  const took = await costMs(() => {
    agent.probes.observe(uid, { containers, podIp: "10.0.0.2", hostIp: "10.0.0.1" });
    for (const name of names) assert.equal(agent.probes.result(uid, name, "readiness"), "failure");
  });
  assert.ok(took < 3_000, `took ${took} ms`);
  agent.probes.remove(uid);
});

test("a container whose image has a name of a megabyte is recognised again and again", async () => {
  const container = testContainer("main", { image: "a".repeat(1_000_000) });
  const took = await costMs(() => {
    for (let look = 0; look < 100; look++) assert.equal(typeof containerHash(container), "string");
  });
  assert.ok(took < 2_000, `took ${took} ms`);
});
