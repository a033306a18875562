import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  ProbingAgent as Agent,
  type Answer,
  id,
  MemoryStore,
  podOf,
  probePorts as ports,
  probe,
  u1,
  web,
} from "../../../test/support/probing-agent.ts";
import type { Container, IdentifiedPod, PodUid } from "../../ground/model/index.ts";
import type { ProbeKind } from "./ports.ts";

describe("events", () => {
  for (const [kind, name] of [
    ["liveness", "Liveness"],
    ["readiness", "Readiness"],
    ["startup", "Startup"],
  ] as const) {
    test(`${name}: warning, failure, error of both kinds; none for success`, async () => {
      await using agent = new Agent();
      const error = (state: "unknown" | "failure") => ({ type: "error", state, message: "no luck" }) as const;
      agent.answers.set(ports[kind], [
        ...(["failure", "success", "failure"] as const),
        ...[error("unknown"), error("unknown"), error("failure")],
        { type: "warning", output: "Probe terminated redirects, Response body: x" },
      ]);
      agent.probes.ensure(podOf([web(probe(kind, { successThreshold: 2, periodSeconds: 1 }))]));
      agent.observe({ web: {} });
      await agent.clock.advance(4_000);
      assert.deepEqual(agent.events, [
        `Warning Unhealthy spec.containers{web}: ${name} probe failed: ill`,
        `Warning Unhealthy spec.containers{web}: ${name} probe failed: ill`,
        `Warning Unhealthy spec.containers{web}: ${name} probe errored and resulted in failure state: no luck`,
        `Warning ProbeWarning spec.containers{web}: ${name} probe warning: Probe terminated redirects, Response body: x`,
      ]);
    });
  }

  test("an error that passes within three tries is not mentioned", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.readiness, ["error", "error", "success"]);
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    assert.deepEqual(agent.events, []);
    assert.deepEqual(agent.times(ports.readiness), [0, 0, 0]);
    assert.equal(agent.result("readiness"), "success");
  });

  test("a port that the container does not have, on a sidecar", async () => {
    await using agent = new Agent();
    const sidecar: Container = {
      name: "proxy",
      restartPolicy: "Always",
      livenessProbe: { tcpSocket: { port: "none" } },
    };
    agent.probes.ensure(podOf([{ name: "web" }], { initContainers: [sidecar] }));
    agent.observe({ proxy: {} });
    await agent.clock.advance(0);
    assert.deepEqual(agent.events, [
      "Warning Unhealthy spec.initContainers{proxy}: Liveness probe errored and resulted in unknown state: " +
        'strconv.Atoi: parsing "none": invalid syntax',
    ]);
    assert.equal(agent.result("liveness", "proxy"), "success");
  });
});

describe("a container that does not run", () => {
  test("fails its probes without events, and cuts off the attempt under way", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.readiness, ["success", "hang"]);
    agent.probes.ensure(podOf([web(probe("readiness"), probe("liveness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(10_000);
    agent.observe({ web: { state: "exited", exitCode: 1 } });
    assert.equal(agent.result("readiness"), "failure");
    assert.equal(agent.result("liveness"), "failure");
    await agent.clock.advance(60_000);
    assert.deepEqual(agent.times(ports.readiness), [0, 10_000]);
    assert.deepEqual(agent.events, []);
    assert.deepEqual(agent.changes, ["web readiness success"]);
  });

  test("for good: counts as a container without probes", async () => {
    await using agent = new Agent();
    const sidecar = { ...web(probe("readiness")), name: "proxy", restartPolicy: "Always" };
    agent.probes.ensure(podOf([web(probe("readiness"))], { restartPolicy: "Never", initContainers: [sidecar] }));
    agent.observe({ web: {}, proxy: {} });
    await agent.clock.advance(0);
    agent.observe({ web: { state: "exited" }, proxy: { state: "exited" } });
    assert.equal(agent.result("readiness", "web"), undefined);
    assert.equal(agent.result("readiness", "proxy"), "failure");
  });

  test("even so, an instance that was made because of a new image is probed", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("readiness"))], { restartPolicy: "Never" }));
    agent.observe({ web: { state: "exited" } });
    agent.observe({ web: { id: id("web-2") } });
    await agent.clock.advance(0);
    assert.equal(agent.result("readiness"), "success");
  });

  test("not yet: is waited for, whatever the old instance said", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    agent.observe({ web: { state: "created" } });
    await agent.clock.advance(60_000);
    assert.equal(agent.result("liveness"), "success");
    assert.deepEqual(agent.attempts, []);
    agent.observe({});
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    assert.deepEqual(agent.times(ports.liveness), [60_000]);
  });

  test("lost sight of and found again: goes on where it was", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    const startedAt = agent.clock.now();
    agent.observe({ web: { startedAt } });
    await agent.clock.advance(0);
    agent.observe({});
    assert.equal(agent.result("readiness"), "success");
    await agent.clock.advance(15_000);
    agent.observe({ web: { startedAt } });
    assert.equal(agent.result("readiness"), "success");
    await agent.clock.advance(10_000);
    assert.deepEqual(agent.times(ports.readiness), [0, 15_000, 20_000]);
  });

  test("in doubt, then running after all: starts afresh instead of being killed", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    agent.observe({ web: { state: "unknown" } });
    assert.equal(agent.result("liveness"), "failure");
    agent.observe({ web: {} });
    assert.equal(agent.result("liveness"), "success");
  });
});

describe("the end of a pod", () => {
  test("termination stops what could restart regular containers; sidecars and readiness go on", async () => {
    await using agent = new Agent();
    const sidecar: Container = {
      name: "proxy",
      restartPolicy: "Always",
      livenessProbe: { tcpSocket: { port: 11 } },
      startupProbe: { tcpSocket: { port: 13 } },
    };
    agent.answers.set(ports.startup, ["failure"]);
    agent.answers.set(13, ["failure", "success"]);
    agent.probes.ensure(
      podOf([web(probe("liveness"), probe("readiness"), probe("startup"))], { initContainers: [sidecar] }),
    );
    agent.observe({ web: {}, proxy: {} });
    await agent.clock.advance(5_000);
    agent.probes.beginTermination(u1);
    assert.equal(agent.result("liveness"), undefined);
    assert.equal(agent.result("startup"), undefined);
    assert.equal(agent.result("liveness", "proxy"), "success");
    agent.observe({ web: {}, proxy: {} });
    await agent.clock.advance(20_000);
    assert.deepEqual(agent.times(ports.startup), [0]);
    assert.deepEqual(agent.times(ports.liveness), []);
    assert.deepEqual(agent.times(ports.readiness), [5_000, 15_000, 25_000]);
    assert.deepEqual(agent.times(13), [0, 10_000]);
    assert.deepEqual(agent.times(11), [10_000, 20_000]);
    // Another sync must not bring them back.
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    agent.observe({ web: {} });
    assert.equal(agent.result("liveness"), undefined);
  });

  test("a pod first seen when already deleted is probed for readiness only", async () => {
    await using agent = new Agent();
    const deletionTimestamp = "2026-01-01T00:00:00Z";
    agent.probes.ensure(
      podOf([web(probe("liveness"), probe("readiness"), probe("startup"))], {}, { deletionTimestamp }),
    );
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    assert.deepEqual(
      agent.attempts.map(({ port }) => port),
      [ports.readiness],
    );
    assert.equal(agent.result("liveness"), undefined);
    assert.equal(agent.result("startup"), undefined);
  });

  test("removal forgets everything, on disk too", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    assert.equal(agent.store.saved.size, 1);
    agent.probes.remove(u1);
    agent.probes.remove(u1);
    await agent.clock.advance(60_000);
    assert.equal(agent.result("readiness"), undefined);
    assert.deepEqual(agent.times(ports.readiness), [0]);
    assert.equal(agent.store.saved.size, 0);
    assert.equal(agent.clock.pendingTimers, 0);
  });

  test("stopping the agent cuts off attempts under way, silently", async () => {
    const agent = new Agent();
    agent.answers.set(ports.readiness, ["hang"]);
    agent.probes.ensure(podOf([web(probe("readiness"), probe("liveness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    await agent.scope.stop();
    assert.equal(agent.clock.pendingTimers, 0);
    assert.deepEqual(agent.events, []);
  });
});

describe("readiness on request", () => {
  test("is probed at once and its ticks start over", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.readiness, ["failure", "failure", "success"]);
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(3_000);
    agent.probes.requestReadiness(u1, "web");
    await agent.clock.advance(10_000);
    assert.deepEqual(agent.times(ports.readiness), [0, 3_000, 13_000]);
  });

  for (const { name, settings = {}, answers, startup, attempts } of [
    { name: "is ready", answers: ["success"], attempts: 1 },
    { name: "is being probed", answers: ["hang"], attempts: 1 },
    { name: "is in its initial delay", settings: { initialDelaySeconds: 9 }, answers: ["success"], attempts: 0 },
    { name: "has not started", answers: ["success"], startup: true, attempts: 0 },
  ] as const) {
    test(`is left alone while the container ${name}`, async () => {
      await using agent = new Agent();
      agent.answers.set(ports.readiness, answers);
      agent.answers.set(ports.startup, ["failure"]);
      agent.probes.ensure(podOf([web(probe("readiness", settings), startup ? probe("startup") : {})]));
      agent.observe({ web: {} });
      await agent.clock.advance(1_000);
      agent.probes.requestReadiness(u1, "web");
      await agent.clock.advance(1_000);
      assert.equal(agent.times(ports.readiness).length, attempts);
    });
  }
});

describe("a restart of the agent", () => {
  async function restarted(pod: IdentifiedPod, answers: readonly Answer[], kind: ProbeKind, ms = 0) {
    const first = new Agent();
    first.answers.set(ports[kind], answers);
    const startedAt = first.clock.now();
    first.probes.ensure(pod);
    first.observe({ web: { startedAt } });
    await first.clock.advance(ms);
    const { clock, store } = first;
    await first[Symbol.asyncDispose]();
    await clock.advance(5_000);
    const second = new Agent({ clock, store });
    second.probes.ensure(pod);
    return { second, startedAt };
  }

  test("does not flip readiness", async () => {
    const { second, startedAt } = await restarted(podOf([web(probe("readiness"))]), ["success"], "readiness");
    await using agent = second;
    agent.answers.set(ports.readiness, ["success"]);
    agent.observe({ web: { startedAt } });
    assert.equal(agent.result("readiness"), "success");
    await agent.clock.advance(10_000);
    assert.equal(agent.times(ports.readiness).length, 1);
    assert.deepEqual(agent.changes, []);
  });

  test("knows that a container has started", async () => {
    const pod = podOf([web(probe("startup"), probe("readiness"))]);
    const { second, startedAt } = await restarted(pod, ["success"], "startup");
    await using agent = second;
    agent.observe({ web: { startedAt } });
    assert.equal(agent.result("startup"), "success");
    await agent.clock.advance(10_000);
    assert.deepEqual(agent.times(ports.startup), []);
    assert.equal(agent.times(ports.readiness).length, 1);
  });

  test("remembers whom to kill", async () => {
    const pod = podOf([web(probe("liveness", { failureThreshold: 1 }))]);
    const { second, startedAt } = await restarted(pod, ["failure"], "liveness");
    await using agent = second;
    agent.observe({ web: { startedAt } });
    assert.equal(agent.result("liveness"), "failure");
    await agent.clock.advance(60_000);
    assert.deepEqual(agent.attempts, []);
  });

  test("a container that was replaced meanwhile starts afresh", async () => {
    const { second } = await restarted(podOf([web(probe("readiness"))]), ["success"], "readiness");
    await using agent = second;
    agent.observe({ web: { id: id("web-2") } });
    assert.equal(agent.result("readiness"), "failure");
    await agent.clock.advance(0);
    assert.equal(agent.result("readiness"), "success");
  });

  test("saved results are used once only", async () => {
    const { second, startedAt } = await restarted(podOf([web(probe("readiness"))]), ["success"], "readiness");
    await using agent = second;
    agent.observe({ web: { startedAt } });
    agent.observe({ web: { startedAt, state: "unknown" } });
    agent.observe({ web: { startedAt } });
    assert.equal(agent.result("readiness"), "failure");
  });

  test("results are saved when they change, not at every attempt", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.readiness, ["success", "success", "failure", "failure", "failure", "failure", "success"]);
    agent.probes.ensure(podOf([web(probe("readiness"), probe("liveness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(200_000);
    assert.equal(agent.store.saves, 3);
    assert.deepEqual(agent.store.saved.get(u1), [
      { container: "web", kind: "liveness", id: "web-1", result: "success" },
      { container: "web", kind: "readiness", id: "web-1", result: "success" },
    ]);
  });

  async function firstAttempts(store: MemoryStore): Promise<readonly number[]> {
    await using agent = new Agent({ store });
    const startedAt = agent.clock.now() - 60_000;
    for (let pod = 0; pod < 100; pod++) {
      agent.probes.ensure(podOf([web(probe("readiness"))], {}, { uid: `u${pod}` }));
      agent.observe({ web: { startedAt } }, `u${pod}`);
    }
    await agent.clock.advance(9_999);
    return agent.times(ports.readiness).slice(0, 100);
  }

  test("probes with a known result spread over their period, the same way every time", async () => {
    const store = new MemoryStore();
    for (let pod = 0; pod < 100; pod++) {
      const saved = { container: "web", kind: "readiness", id: id("web-1"), result: "success" } as const;
      store.saved.set(`u${pod}` as PodUid, [saved]);
    }
    const times = await firstAttempts(store);
    assert.equal(times.length, 100);
    const perSecond = Array.from({ length: 10 }, (_, second) => times.filter((at) => Math.floor(at / 1000) === second));
    for (const { length } of perSecond) assert.ok(length >= 2 && length <= 25, `${length} in one second`);
    assert.deepEqual(await firstAttempts(store), times);
  });

  test("those somebody waits for come within a second", async () => {
    const times = await firstAttempts(new MemoryStore());
    assert.equal(times.length, 100);
    assert.ok(Math.max(...times) <= 1_000);
    assert.ok(new Set(times).size > 50);
  });
});

describe("what others are told", () => {
  test("listeners hear of changed results until they leave", async () => {
    await using agent = new Agent();
    const heard: string[] = [];
    const leave = agent.probes.onChange((uid, container, kind, result) =>
      heard.push(`${uid} ${container} ${kind} ${result}`),
    );
    agent.answers.set(ports.readiness, ["success", "success", "failure", "success"]);
    agent.probes.ensure(podOf([web(probe("readiness", { failureThreshold: 1 }))]));
    agent.observe({ web: {} });
    await agent.clock.advance(20_000);
    leave();
    await agent.clock.advance(10_000);
    assert.deepEqual(heard, ["u1 web readiness success", "u1 web readiness failure"]);
    assert.equal(agent.result("readiness"), "success");
  });

  test("a listener may change the pod from within", async () => {
    await using agent = new Agent();
    agent.probes.onChange((uid) => agent.probes.remove(uid));
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(60_000);
    assert.deepEqual(agent.times(ports.readiness), [0]);
    assert.equal(agent.clock.pendingTimers, 0);
  });

  test("metrics: every attempt with its kind, result, duration and lateness", async () => {
    await using agent = new Agent();
    agent.attemptMs = 250;
    agent.answers.set(ports.readiness, ["success", "failure", "error"]);
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(25_000);
    const common = { uid: "u1", namespace: "ns", pod: "p", container: "web", kind: "readiness", lateMs: 0 };
    assert.deepEqual(agent.measured, [
      { ...common, result: "successful", durationMs: 250 },
      { ...common, result: "failed", durationMs: 250 },
      { ...common, result: "unknown", durationMs: 750 },
    ]);
  });

  test("the ledger: the first attempt and every change", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.readiness, ["failure", "success"]);
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(30_000);
    assert.deepEqual(
      agent.ledger
        .read(u1)
        ?.entries.map(({ step, subject, outcome, message }) => ({ step, subject, outcome, message })),
      [
        { step: "probe", subject: "web readiness", outcome: "failed", message: "Readiness probe failed: ill" },
        { step: "probe", subject: "web readiness", outcome: "ok", message: "failure -> success" },
      ],
    );
  });

  test("results of another instance than the one asked about are not passed off as its own", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.liveness, ["failure"]);
    agent.probes.ensure(podOf([web(probe("liveness", { failureThreshold: 1 }), probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    const results = (kind: "liveness" | "readiness" | "startup", instance: string) =>
      agent.probes.result(u1, "web", kind, id(instance));
    assert.equal(results("liveness", "web-1"), "failure");
    assert.equal(results("liveness", "web-2"), "success");
    assert.equal(results("startup", "web-1"), undefined);
    assert.equal(results("readiness", "web-1"), "success");
    assert.equal(results("readiness", "web-2"), "failure");
  });
});
