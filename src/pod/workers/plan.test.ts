import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  exited,
  observedPod,
  testContainer,
  testHash,
  testObserved,
  testPod,
  testSandbox,
} from "../../../test/support/pods.ts";
import type { IdentifiedPod, ObservedPod, SandboxId } from "../../ground/model/index.ts";
import { type PodPlan, planPod } from "./plan.ts";
import type { ProbeResults } from "./plan-input.ts";

type Results = { readonly liveness?: "failure"; readonly startup?: "success" | "failure" | "unknown" };

function plan(pod: IdentifiedPod, observed: ObservedPod, results: Results = {}): PodPlan {
  const probes: ProbeResults = { liveness: () => results.liveness, startup: () => results.startup };
  return planPod({ pod, observed, probes, hashOf: testHash, given: { to: () => undefined, toPod: () => undefined } });
}

/** What a plan starts and kills, in the shortest form that still tells everything. */
function brief(result: PodPlan): object {
  return {
    ...(result.killPod ? { killPod: true } : {}),
    ...(result.kills.length > 0 ? { kills: result.kills.map(({ message }) => message) } : {}),
    ...(result.sandbox.type === "keep"
      ? {}
      : { sandbox: result.sandbox.type === "create" ? result.sandbox.attempt : "none" }),
    ...(result.restartAll === undefined ? {} : { restartAll: result.restartAll.name }),
    ...(result.startEphemeral.length > 0 ? { ephemeral: result.startEphemeral } : {}),
    ...(result.startInit.length > 0 ? { init: result.startInit } : {}),
    ...(result.startRegular.length > 0 ? { regular: result.startRegular } : {}),
  };
}

describe("sandbox", () => {
  const never = testPod({ restartPolicy: "Never" });
  const neverPrepared = testPod({
    restartPolicy: "Never",
    initContainers: [testContainer("proxy", { restartPolicy: "Always" }), testContainer("setup")],
  });
  const onFailure = testPod({ restartPolicy: "OnFailure" });
  const dead = testSandbox({ state: "notReady" });
  for (const [name, pod, observed, wanted] of [
    ["none yet", testPod(), observedPod({ sandboxes: [] }), { sandbox: 0, regular: ["main"] }],
    ["ready", testPod(), observedPod({ containers: [testObserved("main")] }), {}],
    ["not ready", testPod(), observedPod({ sandboxes: [dead] }), { killPod: true, sandbox: 1, regular: ["main"] }],
    [
      "two ready",
      testPod(),
      observedPod({ sandboxes: [testSandbox({ attempt: 1, id: "b" as SandboxId }), testSandbox()] }),
      { killPod: true, sandbox: 2, regular: ["main"] },
    ],
    [
      "network mode differs",
      testPod({ hostNetwork: true }),
      observedPod(),
      { killPod: true, sandbox: 1, regular: ["main"] },
    ],
    [
      "lost its address",
      testPod(),
      observedPod({ sandboxes: [testSandbox({ ip: "" })] }),
      { killPod: true, sandbox: 1, regular: ["main"] },
    ],
    [
      "no network status at all",
      testPod(),
      observedPod({ sandboxes: [testSandbox({ ip: undefined })] }),
      { regular: ["main"] },
    ],
    [
      "dead, policy Never, has run",
      never,
      observedPod({ sandboxes: [dead], containers: [exited("main", 1)] }),
      { killPod: true, sandbox: "none" },
    ],
    [
      "dead, policy Never, never ran",
      never,
      observedPod({ sandboxes: [dead] }),
      { killPod: true, sandbox: 1, regular: ["main"] },
    ],
    [
      "dead, policy Never, only a sidecar and an init container ran",
      neverPrepared,
      observedPod({ sandboxes: [dead], containers: [testObserved("proxy"), exited("setup", 0)] }),
      { killPod: true, sandbox: 1, init: ["proxy"] },
    ],
    [
      "dead, policy Never, made and never started",
      neverPrepared,
      observedPod({
        sandboxes: [dead],
        containers: [exited("setup", 0), { ...testObserved("main"), state: "created" }],
      }),
      { killPod: true, sandbox: 1, init: ["proxy"] },
    ],
    [
      "dead, policy Never, an init container runs",
      neverPrepared,
      observedPod({ sandboxes: [dead], containers: [testObserved("proxy"), testObserved("setup")] }),
      { killPod: true, sandbox: "none" },
    ],
    [
      "dead, OnFailure, succeeded",
      onFailure,
      observedPod({ sandboxes: [dead], containers: [exited("main", 0)] }),
      { killPod: true, sandbox: "none" },
    ],
    [
      "dead, OnFailure, failed",
      onFailure,
      observedPod({ sandboxes: [dead], containers: [exited("main", 1)] }),
      { killPod: true, sandbox: 1, regular: ["main"] },
    ],
    [
      "being deleted",
      testPod({}, { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      observedPod({ sandboxes: [] }),
      { sandbox: "none" },
    ],
  ] as const) {
    test(name, () => assert.deepEqual(brief(plan(pod, observed)), wanted));
  }

  test("users are told of a sandbox that died, not of one the spec replaced", () => {
    const died = plan(testPod(), observedPod({ sandboxes: [dead] })).sandbox;
    assert.equal(died.type === "create" && died.replaced, dead.id);
    const changed = plan(testPod({ hostNetwork: true }), observedPod()).sandbox;
    assert.equal(changed.type === "create" && changed.replaced, undefined);
  });
});

describe("restart policies", () => {
  for (const { policy, exitCode, wanted } of [
    { policy: "Always", exitCode: 0, wanted: { regular: ["main"] } },
    { policy: "Always", exitCode: 1, wanted: { regular: ["main"] } },
    { policy: "OnFailure", exitCode: 0, wanted: { killPod: true, sandbox: "none" } },
    { policy: "OnFailure", exitCode: 1, wanted: { regular: ["main"] } },
    { policy: "Never", exitCode: 0, wanted: { killPod: true, sandbox: "none" } },
    { policy: "Never", exitCode: 1, wanted: { killPod: true, sandbox: "none" } },
  ] as const) {
    test(`${policy}, exit ${exitCode}`, () => {
      const pod = testPod({ restartPolicy: policy });
      assert.deepEqual(brief(plan(pod, observedPod({ containers: [exited("main", exitCode)] }))), wanted);
    });
  }

  const rules = [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }];
  const all = [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [9] } }];
  const dead = testSandbox({ state: "notReady" });
  for (const [name, policy, container, observed, wanted] of [
    [
      "its own policy",
      "Always",
      { restartPolicy: "Never" },
      { containers: [exited("main", 1)] },
      { killPod: true, sandbox: "none" },
    ],
    [
      "its own policy, the other way",
      "Never",
      { restartPolicy: "Always" },
      { containers: [exited("main", 0)] },
      { regular: ["main"] },
    ],
    [
      "a rule",
      "Never",
      { restartPolicy: "Never", restartPolicyRules: rules },
      { containers: [exited("main", 42)] },
      { regular: ["main"] },
    ],
    [
      "no rule",
      "Never",
      { restartPolicy: "Never", restartPolicyRules: rules },
      { containers: [exited("main", 1)] },
      { killPod: true, sandbox: "none" },
    ],
    [
      "a dead sandbox, and it may restart",
      "Never",
      { restartPolicy: "Never", restartPolicyRules: rules },
      { sandboxes: [dead], containers: [exited("main", 42)] },
      { killPod: true, sandbox: 1, regular: ["main"] },
    ],
    [
      "a dead sandbox, its own OnFailure, succeeded",
      "Always",
      { restartPolicy: "OnFailure" },
      { sandboxes: [dead], containers: [exited("main", 0)] },
      { killPod: true, sandbox: "none" },
    ],
    [
      "a dead sandbox, its own Never, ended before",
      "Always",
      { restartPolicy: "Never" },
      { sandboxes: [dead], containers: [exited("main", 1)] },
      { killPod: true, sandbox: "none" },
    ],
    [
      "a dead sandbox, and no rule for how it ended",
      "Never",
      { restartPolicy: "Never", restartPolicyRules: rules },
      { sandboxes: [dead], containers: [exited("main", 1)] },
      { killPod: true, sandbox: "none" },
    ],
    [
      "all restart",
      "Never",
      { restartPolicy: "Never", restartPolicyRules: all },
      { containers: [exited("main", 9)] },
      { restartAll: "main" },
    ],
    [
      "all restart, but it ended in an older sandbox",
      "Never",
      { restartPolicy: "Always", restartPolicyRules: all },
      { containers: [exited("main", 9, { sandboxId: "older" as SandboxId })] },
      { regular: ["main"] },
    ],
  ] as const) {
    test(`of the container: ${name}`, () => {
      const pod = testPod({ restartPolicy: policy, containers: [testContainer("main", container)] });
      assert.deepEqual(brief(plan(pod, observedPod(observed))), wanted);
    });
  }

  test("a created container is started", () =>
    assert.deepEqual(
      brief(plan(testPod(), observedPod({ containers: [testObserved("main", { state: "created" })] }))),
      {
        regular: ["main"],
      },
    ));
  test("an unknown container is killed first", () =>
    assert.deepEqual(
      brief(plan(testPod(), observedPod({ containers: [testObserved("main", { state: "unknown" })] }))),
      {
        kills: ['Container is in "unknown" state, try killing it before restart'],
        regular: ["main"],
      },
    ));
  test("one container of two ended under Never: the other is kept, nothing starts", () => {
    const pod = testPod({ restartPolicy: "Never", containers: [testContainer("a"), testContainer("b")] });
    assert.deepEqual(brief(plan(pod, observedPod({ containers: [exited("a", 1), testObserved("b")] }))), {});
  });
});

describe("running containers", () => {
  const running = observedPod({ containers: [testObserved("main")] });
  const never = testPod({ restartPolicy: "Never" });
  for (const [name, pod, observed, results, wanted] of [
    [
      "definition changed",
      testPod(),
      observedPod({ containers: [testObserved("main", { hash: "old" })] }),
      {},
      { kills: ["Container main definition changed, will be restarted"], regular: ["main"] },
    ],
    [
      "definition changed under Never",
      never,
      observedPod({ containers: [testObserved("main", { hash: "old" })] }),
      {},
      { kills: ["Container main definition changed, will be restarted"], regular: ["main"] },
    ],
    [
      "liveness failed",
      testPod(),
      running,
      { liveness: "failure" },
      { kills: ["Container main failed liveness probe, will be restarted"], regular: ["main"] },
    ],
    [
      "startup failed",
      testPod(),
      running,
      { startup: "failure" },
      { kills: ["Container main failed startup probe, will be restarted"], regular: ["main"] },
    ],
    [
      "liveness failed under Never: the pod is over",
      never,
      running,
      { liveness: "failure" },
      { killPod: true, sandbox: "none" },
    ],
    ["startup pending", testPod(), running, { startup: "unknown" }, {}],
  ] as const) {
    test(name, () => assert.deepEqual(brief(plan(pod, observed, results)), wanted));
  }
});

describe("init containers", () => {
  const inits = (...names: string[]): IdentifiedPod =>
    testPod({ initContainers: names.map((name) => testContainer(name)) });
  for (const [name, pod, observed, wanted] of [
    ["the first starts with the sandbox", inits("a", "b"), observedPod({ sandboxes: [] }), { sandbox: 0, init: ["a"] }],
    ["the first starts in a ready sandbox", inits("a", "b"), observedPod(), { init: ["a"] }],
    ["one runs: wait", inits("a", "b"), observedPod({ containers: [testObserved("a")] }), {}],
    [
      "the first is done: the second starts",
      inits("a", "b"),
      observedPod({ containers: [exited("a", 0)] }),
      { init: ["b"] },
    ],
    [
      "the second runs, the first's record is gone",
      inits("a", "b"),
      observedPod({ containers: [testObserved("b")] }),
      {},
    ],
    [
      "all done: regular ones start",
      inits("a", "b"),
      observedPod({ containers: [exited("b", 0), exited("a", 0)] }),
      { regular: ["main"] },
    ],
    ["failed: again", inits("a"), observedPod({ containers: [exited("a", 1)] }), { init: ["a"] }],
    [
      "out of memory counts as failed even with exit 0",
      inits("a"),
      observedPod({ containers: [exited("a", 0, { reason: "OOMKilled" })] }),
      { init: ["a"] },
    ],
    [
      "created: start it",
      inits("a"),
      observedPod({ containers: [testObserved("a", { state: "created" })] }),
      { init: ["a"] },
    ],
    [
      "unknown: kill first",
      inits("a"),
      observedPod({ containers: [testObserved("a", { state: "unknown" })] }),
      { kills: ['Init container is in "unknown" state, try killing it before restart'], init: ["a"] },
    ],
    [
      "records gone while the main one runs: not run again",
      inits("a"),
      observedPod({ containers: [testObserved("main")] }),
      {},
    ],
    [
      "records gone and the main one has exited: begin anew",
      inits("a"),
      observedPod({ containers: [exited("main", 0)] }),
      { init: ["a"] },
    ],
    [
      "a main one of an earlier sandbox proves nothing",
      inits("a"),
      observedPod({ containers: [testObserved("main", { sandboxId: "old" as SandboxId })] }),
      { init: ["a"] },
    ],
  ] as const) {
    test(name, () => assert.deepEqual(brief(plan(pod, observed)), wanted));
  }
  test("failed under Never: the pod is over", () => {
    const pod = testPod({ restartPolicy: "Never", initContainers: [testContainer("a")] });
    assert.deepEqual(brief(plan(pod, observedPod({ containers: [exited("a", 1)] }))), {
      killPod: true,
      sandbox: "none",
    });
  });
});

describe("sidecars", () => {
  const sidecar = testContainer("side", { restartPolicy: "Always" });
  const probed = testContainer("side", { restartPolicy: "Always", startupProbe: { exec: { command: ["true"] } } });
  const pod = testPod({ initContainers: [sidecar, testContainer("setup")] });
  const waitingPod = testPod({ initContainers: [probed, testContainer("setup")] });
  const onlySidecar = testPod({ initContainers: [sidecar] });
  const job = testPod({ restartPolicy: "Never", initContainers: [sidecar] });
  for (const [name, given, observed, results, wanted] of [
    ["runs: the next may start", pod, observedPod({ containers: [testObserved("side")] }), {}, { init: ["setup"] }],
    [
      "its startup probe holds the next back",
      waitingPod,
      observedPod({ containers: [testObserved("side")] }),
      { startup: "unknown" },
      {},
    ],
    [
      "its startup probe lets the next go",
      waitingPod,
      observedPod({ containers: [testObserved("side")] }),
      { startup: "success" },
      { init: ["setup"] },
    ],
    [
      "its startup probe failed",
      waitingPod,
      observedPod({ containers: [testObserved("side")] }),
      { startup: "failure" },
      { kills: ["Init container side failed startup probe, will be restarted"], init: ["side"] },
    ],
    [
      "the last one runs: regular ones start",
      onlySidecar,
      observedPod({ containers: [testObserved("side")] }),
      {},
      { regular: ["main"] },
    ],
    [
      "exited while setup runs: restarted",
      pod,
      observedPod({ containers: [testObserved("setup"), exited("side", 1)] }),
      {},
      { init: ["side"] },
    ],
    [
      "exited beside a running main: restarted",
      pod,
      observedPod({ containers: [testObserved("main"), exited("setup", 0), exited("side", 0)] }),
      {},
      { init: ["side"] },
    ],
    [
      "record lost beside a running main: restarted",
      pod,
      observedPod({ containers: [testObserved("main")] }),
      {},
      { init: ["side"] },
    ],
    [
      "setup done, sidecar dead: sidecar and main start",
      pod,
      observedPod({ containers: [exited("setup", 0), exited("side", 1)] }),
      {},
      { init: ["side"], regular: ["main"] },
    ],
    [
      "main of a job succeeded: the pod is over, sidecar or not",
      job,
      observedPod({ containers: [exited("main", 0), testObserved("side")] }),
      {},
      { killPod: true, sandbox: "none" },
    ],
    [
      "its definition changed",
      onlySidecar,
      observedPod({ containers: [testObserved("main"), testObserved("side", { hash: "old" })] }),
      {},
      { kills: ["Init container side definition changed, will be restarted"], init: ["side"] },
    ],
  ] as const) {
    test(name, () => assert.deepEqual(brief(plan(given, observed, results)), wanted));
  }
});

describe("ephemeral containers", () => {
  const pod = testPod({ ephemeralContainers: [{ name: "debug", image: "busybox:1" }] });
  test("started beside running ones", () =>
    assert.deepEqual(brief(plan(pod, observedPod({ containers: [testObserved("main")] }))), { ephemeral: ["debug"] }));
  test("never restarted", () =>
    assert.deepEqual(brief(plan(pod, observedPod({ containers: [exited("debug", 1), testObserved("main")] }))), {}));
  test("not in the sync that makes the sandbox", () =>
    assert.deepEqual(brief(plan(pod, observedPod({ sandboxes: [] }))), { sandbox: 0, regular: ["main"] }));
});
