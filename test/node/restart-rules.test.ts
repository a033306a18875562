// A pod with each kind of restart rule, on a real runtime: what restarts, how often, and what its users read of it.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Container, Pod, PodSpec } from "../../src/ground/model/index.ts";
import { isReady } from "../support/agent.ts";
import { clusterForTests } from "../support/cluster-for-tests.ts";
import { containerStatus } from "../support/resize-proof/resizing.ts";

const shared = clusterForTests();

/** Ends with one code after the other; after the last it runs until it is told to end. The volume outlives restarts. */
function ends(name: string, codes: readonly number[], more: Partial<Container> = {}): Container {
  const ways = codes.map((code, index) => `${index}) exit ${code};;`).join(" ");
  const script = `n=$(cat /count/${name} 2>/dev/null || echo 0); echo $((n + 1)) > /count/${name}; case $n in ${ways} esac; trap "exit 0" TERM; sleep 1d & wait`;
  return {
    name,
    image: shared.containerd.images.busybox,
    command: ["sh", "-c", script],
    volumeMounts: [{ name: "count", mountPath: "/count" }],
    ...more,
  };
}

const rule = (action: string, operator: string, ...values: readonly number[]): Partial<Container> => ({
  restartPolicy: "Never",
  restartPolicyRules: [{ action, exitCodes: { operator, values } }],
});

async function run(name: string, spec: Partial<PodSpec>): Promise<void> {
  await shared.cluster.create(name, { volumes: [{ name: "count", emptyDir: {} }], ...spec });
}

const restartsOf = (pod: Pod, container: string): number | undefined => containerStatus(pod, container)?.restartCount;
const exitOf = (pod: Pod, container: string): number | undefined =>
  containerStatus(pod, container)?.state?.terminated?.exitCode;

interface Row {
  readonly what: string;
  readonly spec: () => Partial<PodSpec>;
  readonly becomes: "Succeeded" | "Failed" | "ready";
  /** How often each container restarts, and with which code it ended last. */
  readonly seen: Readonly<Record<string, readonly [restarts: number, exitCode: number | undefined]>>;
}

const rows: readonly Row[] = [
  {
    what: "rule-in",
    spec: () => ({ restartPolicy: "Never", containers: [ends("main", [42, 0], rule("Restart", "In", 42))] }),
    becomes: "Succeeded",
    seen: { main: [1, 0] },
  },
  {
    what: "rule-not-in",
    spec: () => ({ restartPolicy: "Never", containers: [ends("main", [7, 3], rule("Restart", "NotIn", 0, 3))] }),
    becomes: "Failed",
    seen: { main: [1, 3] },
  },
  {
    what: "own-policy-on-failure",
    spec: () => ({ restartPolicy: "Never", containers: [ends("main", [1, 0], { restartPolicy: "OnFailure" })] }),
    becomes: "Succeeded",
    seen: { main: [1, 0] },
  },
  {
    what: "own-policy-always",
    spec: () => ({
      restartPolicy: "Never",
      containers: [ends("main", [0], { restartPolicy: "Always" }), ends("once", [0])],
    }),
    becomes: "ready",
    seen: { main: [1, undefined], once: [0, 0] },
  },
  {
    what: "own-policy-never",
    spec: () => ({
      restartPolicy: "Always",
      containers: [ends("main", [1]), ends("once", [5], { restartPolicy: "Never" })],
    }),
    becomes: "ready",
    seen: { main: [1, undefined], once: [0, 5] },
  },
  {
    what: "rule-of-init",
    spec: () => ({
      restartPolicy: "Never",
      initContainers: [ends("setup", [42, 0], rule("Restart", "In", 42))],
      containers: [ends("main", [0])],
    }),
    becomes: "Succeeded",
    seen: { setup: [1, 0], main: [0, 0] },
  },
  {
    what: "policy-of-init",
    spec: () => ({
      restartPolicy: "Always",
      initContainers: [ends("setup", [9], { restartPolicy: "Never" })],
      containers: [ends("main", [])],
    }),
    becomes: "Failed",
    seen: { setup: [0, 9] },
  },
];

describe("rules and policies of containers", { concurrency: true }, () => {
  for (const { what, spec, becomes, seen } of rows) {
    test(what, async () => {
      await run(what, spec());
      const isThere = (pod: Pod): boolean =>
        (becomes === "ready"
          ? containerStatus(pod, "main")?.state?.running !== undefined && exitOf(pod, "once") !== undefined
          : pod.status?.phase === becomes) &&
        Object.entries(seen).every(([name, [count]]) => restartsOf(pod, name) === count);
      const pod = await shared.cluster.until(what, becomes, isThere);
      for (const [name, [count, exitCode]] of Object.entries(seen)) {
        assert.equal(restartsOf(pod, name), count, `restarts of ${name}`);
        assert.equal(exitOf(pod, name), exitCode, `the end of ${name}`);
      }
      if (becomes === "ready") assert.equal(pod.status?.phase, "Running");
      await shared.cluster.delete(what, 0);
      await shared.cluster.untilGone(what);
    });
  }

  test("restart-all", async () => {
    await using watch = await shared.cluster.watch();
    await run("restart-all", {
      initContainers: [ends("setup", [0, 0]), ends("side", [], { restartPolicy: "Always" })],
      containers: [ends("main", []), ends("asks", [88], rule("RestartAllContainers", "In", 88))],
    });
    const after = await shared.cluster.until(
      "restart-all",
      "all started anew",
      (pod) => isReady(pod) && ["side", "main", "asks"].every((name) => restartsOf(pod, name) === 1),
    );
    assert.equal(restartsOf(after, "setup"), 1, "it begins with the init containers");
    const versions = watch.versions("restart-all").filter(({ metadata }) => metadata?.uid === after.metadata?.uid);
    const running = versions.findIndex(({ status }) => status?.phase === "Running");
    if (running >= 0) {
      for (const { status } of versions.slice(running))
        assert.equal(status?.phase, "Running", "it never ceases to run");
    }
    const condition = after.status?.conditions?.find(({ type }) => type === "AllContainersRestarting");
    assert.equal(condition?.status, "False");
    const ips = new Set(versions.flatMap(({ status }) => status?.podIP ?? []));
    assert.equal(ips.size, 1, "it stays in its sandbox");
    await shared.cluster.delete("restart-all", 0);
    await shared.cluster.untilGone("restart-all");
  });
});
