// Probes of every kind on real containers: readiness that comes and goes, restarts, the gate of a startup probe.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Container, Pod, Probe } from "../../src/ground/model/index.ts";
import { isReady } from "../support/agent.ts";
import { ServingStatus, serveHealth } from "../support/grpc-health.ts";
import { idOf, isOver, statusOf, TestNode } from "../support/test-node.ts";

describe("probes", { concurrency: 6 }, () => {
  let node: TestNode;
  before(async () => {
    node = await TestNode.start();
  });
  after(() => node?.[Symbol.asyncDispose]());

  const every = { periodSeconds: 1, failureThreshold: 1 } as const;
  const exec = (script: string): Probe => ({ exec: { command: ["sh", "-c", script] }, ...every });
  const isUnready = (pod: Pod): boolean => statusOf(pod, "main").state?.running !== undefined && !isReady(pod);
  const web = (probes: Partial<Container>): Container =>
    node.shell("main", "mkdir /www; touch /www/index.html; exec httpd -f -p 8080 -h /www", {
      ports: [{ name: "web", containerPort: 8080 }],
      ...probes,
    });

  for (const { kind, main, good, bad, complaint } of [
    {
      kind: "exec",
      main: () =>
        node.server("main", { readinessProbe: exec("test -f /tmp/ready || { printf 'not yet' >&2; false; }") }),
      good: "touch /tmp/ready",
      bad: "rm /tmp/ready",
      complaint: "not yet",
    },
    {
      kind: "http",
      main: () => web({ readinessProbe: { httpGet: { path: "/ready?now=1", port: "web" }, ...every } }),
      good: "touch /www/ready",
      bad: "rm /www/ready",
      complaint: "HTTP probe failed with statuscode: 404",
    },
    {
      kind: "tcp",
      main: () => node.server("main", { readinessProbe: { tcpSocket: { port: 9000 }, ...every } }),
      good: "nc -ll -p 9000 -e true >/dev/null 2>&1 &",
      bad: "killall nc",
      complaint: "connect: connection refused",
    },
  ]) {
    test(`readiness by ${kind}: comes, goes and comes again, and restarts nothing`, async () => {
      const name = `ready-${kind}`;
      await node.agent.apply(name, { containers: [main()] });
      const pod = await node.agent.until(name, "not ready yet", isUnready);
      await node.untilLogged(`${name}-test-node`, 'reason="Unhealthy"', `Readiness probe failed: `, complaint);
      await node.sh(pod, "main", good);
      await node.agent.until(name, "ready", isReady);
      await node.sh(pod, "main", bad);
      const gone = await node.agent.until(name, "no longer ready", isUnready);
      const ready = gone.status?.conditions?.find(({ type }) => type === "Ready");
      assert.deepEqual(
        [ready?.reason, ready?.message],
        ["ContainersNotReady", "containers with unready status: [main]"],
      );
      await node.sh(pod, "main", good);
      const again = await node.agent.until(name, "ready again", isReady);
      assert.equal(idOf(statusOf(again, "main")), idOf(statusOf(pod, "main")));
      assert.equal(again.status?.phase, "Running");
    });
  }

  test("readiness by gRPC, of a pod on the host's network", async () => {
    using health = await serveHealth(ServingStatus.NOT_SERVING);
    const readinessProbe = { grpc: { port: health.port, service: "shop" }, ...every };
    await node.agent.apply("ready-grpc", {
      hostNetwork: true,
      containers: [node.server("main", { readinessProbe })],
    });
    await node.agent.until("ready-grpc", "not ready yet", isUnready);
    await node.untilLogged("ready-grpc", 'service unhealthy (responded with \\"NOT_SERVING\\")');
    health.status = ServingStatus.SERVING;
    await node.agent.until("ready-grpc", "ready", isReady);
    health.status = ServingStatus.NOT_SERVING;
    await node.agent.until("ready-grpc", "no longer ready", isUnready);
    assert.deepEqual([...new Set(health.asked)], ["shop"]);
  });

  test("liveness: a container that fails it is killed and started again, the others of its pod go on", async () => {
    const containers = [
      node.server("main", { livenessProbe: { ...exec("! test -f /tmp/dead"), failureThreshold: 2 } }),
      node.server("other"),
    ];
    await node.agent.apply("live", { containers });
    const pod = await node.agent.until("live", "ready", isReady);
    await node.sh(pod, "main", "touch /tmp/dead");
    const restarted = await node.agent.until(
      "live",
      "restarted",
      (seen) => statusOf(seen, "main").restartCount === 1 && isReady(seen),
    );
    assert.equal(idOf(statusOf(restarted, "other")), idOf(statusOf(pod, "other")));
    await node.untilLogged(
      "live-test-node",
      'reason="Killing"',
      "Container main failed liveness probe, will be restarted",
    );
    assert.equal(statusOf(restarted, "main").lastState?.terminated?.exitCode, 0);
  });

  test("liveness under restartPolicy Never: killed, and the pod is over", async () => {
    // It fails once the program hears of its end.
    const livenessProbe = exec("! test -e /up");
    const main = node.shell("main", "trap 'exit 3' TERM; touch /up; sleep 1d & wait", { livenessProbe });
    await node.agent.apply("live-never", { restartPolicy: "Never", containers: [main] });
    const over = await node.agent.until("live-never", "over", isOver);
    assert.equal(over.status?.phase, "Failed");
    assert.equal(statusOf(over, "main").state?.terminated?.exitCode, 3);
    assert.equal(statusOf(over, "main").restartCount, 0);
  });

  test("a probe's own grace counts instead of the pod's", async () => {
    const deaf = node.shell("main", "trap '' TERM; touch /up; while true; do sleep 1; done", {
      livenessProbe: { ...exec("! test -f /tmp/dead"), terminationGracePeriodSeconds: 1 },
    });
    await node.agent.apply("live-grace", { terminationGracePeriodSeconds: 600, containers: [deaf] });
    const pod = await node.agent.until("live-grace", "ready", isReady);
    await node.sh(pod, "main", "until test -f /up; do usleep 50000; done; touch /tmp/dead");
    const restarted = await node.agent.until(
      "live-grace",
      "restarted",
      (seen) => statusOf(seen, "main").restartCount === 1,
    );
    assert.equal(statusOf(restarted, "main").lastState?.terminated?.exitCode, 137);
    // Its own end would take ten minutes otherwise.
    await node.agent.apply("live-grace", { terminationGracePeriodSeconds: 1, containers: [node.server("main")] });
  });

  test("until a startup probe has succeeded, no other probe runs and the pod is not ready", async () => {
    const trace = await node.trace("startup");
    const probing = (word: string, script: string): Probe => exec(`echo ${word} >> /trace/words; ${script}`);
    const main = node.server("main", {
      volumeMounts: [trace.mount],
      startupProbe: { ...probing("startup", "test -f /tmp/up"), failureThreshold: 60 },
      livenessProbe: probing("liveness", "test -f /tmp/up"),
      readinessProbe: probing("readiness", "true"),
    });
    await node.agent.apply("startup", { volumes: [trace.volume], containers: [main] });
    const pod = await node.agent.until("startup", "it runs", isUnready);
    assert.equal(statusOf(pod, "main").started, false);
    await node.untilLogged("startup-test-node", "Startup probe failed");
    await node.sh(pod, "main", "sleep 2; touch /tmp/up");
    const ready = await node.agent.until("startup", "ready", isReady);
    assert.equal(statusOf(ready, "main").started, true);
    assert.equal(statusOf(ready, "main").restartCount, 0);
    const words = await trace.words();
    const begun = words.findIndex((word) => word !== "startup");
    assert.ok(begun >= 2, words.join(" "));
    assert.ok(!words.slice(begun).includes("startup"), "and it runs no more afterwards");
  });

  test("a startup probe that never succeeds: the container is started again", async () => {
    const main = node.server("main", { startupProbe: { ...exec("false"), failureThreshold: 2 } });
    await node.agent.apply("startup-fails", { containers: [main] });
    const pod = await node.agent.until(
      "startup-fails",
      "restarted",
      (seen) => statusOf(seen, "main").restartCount >= 1,
    );
    assert.equal(isReady(pod), false);
    await node.untilLogged("startup-fails-test-node", "Container main failed startup probe, will be restarted");
  });

  test("the first probe waits for its delay, a slow one is given up at its timeout", async () => {
    const trace = await node.trace("delay");
    const main = node.shell("main", "cut -d. -f1 /proc/uptime >> /trace/words; sleep 1d", {
      volumeMounts: [trace.mount],
      readinessProbe: { ...exec("cut -d. -f1 /proc/uptime >> /trace/words"), initialDelaySeconds: 3 },
    });
    const slow = node.server("slow", { readinessProbe: { ...exec("sleep 30"), timeoutSeconds: 1 } });
    await node.agent.apply("delay", { volumes: [trace.volume], containers: [main, slow] });
    await node.agent.until("delay", "main is ready", (pod) => statusOf(pod, "main").ready);
    const [started = 0, probed = 0] = (await trace.words()).map(Number);
    assert.ok(probed - started >= 2, `probed after ${probed - started} s`);
    await node.untilLogged("delay-test-node", 'command timed out: \\"sh -c sleep 30\\" timed out after 1s');
    assert.equal(statusOf((await node.agent.pod("delay")) as Pod, "slow").ready, false);
  });
});
