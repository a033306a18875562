import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  ProbingAgent as Agent,
  id,
  podOf,
  probePorts as ports,
  probe,
  u1,
  web,
} from "../../../test/support/probing-agent.ts";
import type { ContainerId } from "../../ground/model/index.ts";

describe("before anything is known", () => {
  for (const [kind, initial] of [
    ["liveness", "success"],
    ["readiness", "failure"],
    ["startup", "unknown"],
  ] as const) {
    test(`${kind} is ${initial}, with and without a container`, async () => {
      await using agent = new Agent();
      agent.answers.set(ports[kind], ["hang"]);
      agent.probes.ensure(podOf([web(probe(kind))]));
      assert.equal(agent.result(kind), initial);
      agent.observe({ web: {} });
      await agent.clock.advance(1_000);
      assert.equal(agent.result(kind), initial);
      for (const other of ["liveness", "readiness", "startup"] as const) {
        if (other !== kind) assert.equal(agent.result(other), undefined);
      }
    });
  }

  test("init and ephemeral containers are not probed, nor is an unknown pod", async () => {
    await using agent = new Agent();
    const init = { ...web(probe("liveness")), name: "init" };
    agent.probes.ensure(podOf([{ name: "web" }], { initContainers: [init] }));
    agent.observe({ web: {}, init: {} });
    agent.observe({ web: {} }, "nobody");
    await agent.clock.advance(60_000);
    assert.deepEqual(agent.attempts, []);
    assert.equal(agent.result("liveness", "init"), undefined);
    assert.equal(agent.result("liveness", "web", "nobody"), undefined);
  });
});

describe("when an attempt is made", () => {
  test("at once without an initial delay, then every period", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    assert.deepEqual(agent.times(ports.readiness), [0]);
    assert.equal(agent.result("readiness"), "success");
    await agent.clock.advance(30_000);
    assert.deepEqual(agent.times(ports.readiness), [0, 10_000, 20_000, 30_000]);
  });

  test("long commands and paths are worked out once, not for every attempt", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(50_000);
    assert.equal(agent.times(ports.readiness).length, 6);
    assert.equal(agent.targets.size, 1);
    agent.observe({ web: { id: "web-2" as ContainerId } });
    await agent.clock.advance(20_000);
    assert.equal(agent.targets.size, 2);
  });

  test("exactly when the initial delay after the start is over", async () => {
    await using agent = new Agent();
    await agent.clock.advance(60_000);
    agent.probes.ensure(podOf([web(probe("liveness", { initialDelaySeconds: 10 }))]));
    agent.observe({ web: { startedAt: agent.clock.now() - 3_250 } });
    await agent.clock.advance(6_749);
    assert.deepEqual(agent.times(ports.liveness), []);
    await agent.clock.advance(1);
    assert.deepEqual(agent.times(ports.liveness), [66_750]);
  });

  test("no later than the initial delay when the machine's time was set back", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("liveness", { initialDelaySeconds: 10 }))]));
    agent.observe({ web: { startedAt: agent.clock.now() + 3_600_000 } });
    await agent.clock.advance(10_000);
    assert.deepEqual(agent.times(ports.liveness), [10_000]);
  });

  test("on a grid that long attempts do not shift", async () => {
    await using agent = new Agent();
    agent.attemptMs = 2_345;
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(45_000);
    assert.deepEqual(agent.times(ports.liveness), [0, 10_000, 20_000, 30_000, 40_000]);
  });

  test("ticks missed during an attempt become one, at once", async () => {
    await using agent = new Agent();
    agent.attemptMs = 25_000;
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(24_999);
    agent.attemptMs = 0;
    await agent.clock.advance(20_000);
    assert.deepEqual(agent.times(ports.liveness), [0, 25_000, 30_000, 40_000]);
  });

  test("repeated observations change nothing", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    const startedAt = agent.clock.now();
    for (let second = 0; second < 25; second++) {
      agent.observe({ web: { startedAt } });
      agent.probes.ensure(podOf([web(probe("liveness"))]));
      await agent.clock.advance(1_000);
    }
    assert.deepEqual(agent.times(ports.liveness), [0, 10_000, 20_000]);
  });

  test("the spec of the first sync wins", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    agent.probes.ensure(podOf([web(probe("liveness", { periodSeconds: 1, tcpSocket: { port: 99 } }))]));
    agent.observe({ web: {} });
    await agent.clock.advance(15_000);
    assert.deepEqual(agent.times(ports.liveness), [0, 10_000]);
    assert.deepEqual(agent.times(99), []);
  });

  test("a probe that hangs delays no other", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.liveness, ["hang"]);
    agent.probes.ensure(podOf([web(probe("liveness"), probe("readiness", { periodSeconds: 1 }))]));
    agent.observe({ web: {} });
    await agent.clock.advance(3_000);
    assert.deepEqual(agent.times(ports.liveness), [0]);
    assert.deepEqual(agent.times(ports.readiness), [0, 1_000, 2_000, 3_000]);
  });

  test("not before the pod has an address", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("readiness"))]));
    const startedAt = agent.clock.now();
    agent.probes.observe(u1, {
      containers: new Map([["web", { id: id("web-1"), state: "running", startedAt, exitCode: 0 }]]),
      podIp: undefined,
      hostIp: "192.168.0.1",
    });
    await agent.clock.advance(500);
    assert.deepEqual(agent.attempts, []);
    agent.observe({ web: { startedAt } });
    await agent.clock.advance(0);
    assert.deepEqual(agent.attempts, [{ at: 500, port: 2, host: "10.0.0.1" }]);
  });

  test("on the node's address for a pod on the host network", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("readiness"))], { hostNetwork: true }));
    agent.observe({ web: {} });
    await agent.clock.advance(0);
    assert.equal(agent.attempts[0]?.host, "192.168.0.1");
  });
});

describe("thresholds", () => {
  for (const { kind, answers, settings = {}, results } of [
    { kind: "readiness", answers: "ssf", results: "ssF", settings: { failureThreshold: 1 } },
    { kind: "readiness", answers: "sffff", results: "ssSFF", settings: { failureThreshold: 3 } },
    { kind: "readiness", answers: "sffsff", results: "sSSsSS", settings: { failureThreshold: 3 } },
    { kind: "readiness", answers: "ssfsss", results: "FsFFss", settings: { failureThreshold: 1, successThreshold: 2 } },
    { kind: "readiness", answers: "sw", results: "ss", settings: { failureThreshold: 1 } },
    { kind: "liveness", answers: "fff", results: "ssF" },
    { kind: "liveness", answers: "ffsfff", results: "sssssF" },
    { kind: "startup", answers: "ffffs", results: "UUUUs", settings: { failureThreshold: 5 } },
    { kind: "startup", answers: "fff", results: "UUF" },
    { kind: "startup", answers: "fes", results: "UUs" },
    { kind: "readiness", answers: "sfeef", results: "sssss", settings: { failureThreshold: 3 } },
    { kind: "readiness", answers: "sfeeff", results: "sssssF", settings: { failureThreshold: 3 } },
  ] as const) {
    test(`${kind} finds ${answers} and says ${results} ${JSON.stringify(settings)}`, async () => {
      const meaning = { s: "success", f: "failure", w: "warning", e: "error" } as const;
      await using agent = new Agent();
      const letters = [...answers] as (keyof typeof meaning)[];
      // An error is tried three times in all.
      const script = letters.flatMap((letter) => (letter === "e" ? ["e", "e", "e"] : [letter]) as typeof letters);
      agent.answers.set(
        ports[kind],
        script.map((letter) => meaning[letter]),
      );
      agent.probes.ensure(podOf([web(probe(kind, settings))]));
      agent.observe({ web: {} });
      let said = "";
      for (const _ of letters) {
        await agent.clock.advance(said === "" ? 0 : 10_000);
        said += agent.result(kind)?.charAt(0) ?? "-";
      }
      assert.equal(said, results.toLowerCase());
    });
  }
});

describe("the hold", () => {
  test("a liveness failure stands until a new container, which starts afresh", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.liveness, ["failure", "failure", "success"]);
    agent.probes.ensure(podOf([web(probe("liveness", { failureThreshold: 2 }))]));
    agent.observe({ web: {} });
    await agent.clock.advance(100_000);
    assert.deepEqual(agent.times(ports.liveness), [0, 10_000]);
    assert.equal(agent.result("liveness"), "failure");
    agent.observe({ web: { state: "exited", exitCode: 137 } });
    assert.equal(agent.result("liveness"), "failure");
    agent.observe({ web: { id: id("web-2") } });
    assert.equal(agent.result("liveness"), "success");
    await agent.clock.advance(10_000);
    assert.deepEqual(agent.times(ports.liveness), [0, 10_000, 100_000, 110_000]);
  });

  test("failures of the old container do not count against the new one", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.liveness, ["failure"]);
    agent.probes.ensure(podOf([web(probe("liveness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(10_000);
    agent.observe({ web: { id: id("web-2") } });
    await agent.clock.advance(10_000);
    assert.equal(agent.result("liveness"), "success");
    await agent.clock.advance(10_000);
    assert.equal(agent.result("liveness"), "failure");
  });

  test("startup decides once; until then nothing else is probed, after it everything at once", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.startup, ["failure", "success"]);
    agent.probes.ensure(podOf([web(probe("startup", { periodSeconds: 4 }), probe("liveness"), probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(3_999);
    assert.deepEqual(
      agent.attempts.map(({ port }) => port),
      [ports.startup],
    );
    await agent.clock.advance(1);
    assert.equal(agent.result("startup"), "success");
    await agent.clock.advance(20_000);
    assert.deepEqual(agent.times(ports.startup), [0, 4_000]);
    assert.deepEqual(agent.times(ports.liveness), [4_000, 14_000, 24_000]);
    assert.deepEqual(agent.times(ports.readiness), [4_000, 14_000, 24_000]);
    assert.deepEqual(agent.changes, ["web startup success", "web readiness success"]);
  });

  test("a longer initial delay still counts after startup", async () => {
    await using agent = new Agent();
    agent.probes.ensure(podOf([web(probe("startup"), probe("liveness", { initialDelaySeconds: 7 }))]));
    agent.observe({ web: {} });
    await agent.clock.advance(10_000);
    assert.deepEqual(agent.times(ports.liveness), [7_000]);
  });

  test("a failed startup rests, and a new container must start again", async () => {
    await using agent = new Agent();
    agent.answers.set(ports.startup, ["failure", "success"]);
    agent.probes.ensure(podOf([web(probe("startup", { failureThreshold: 1 }), probe("readiness"))]));
    agent.observe({ web: {} });
    await agent.clock.advance(60_000);
    assert.deepEqual(agent.times(ports.startup), [0]);
    assert.deepEqual(agent.times(ports.readiness), []);
    agent.observe({ web: { id: id("web-2") } });
    assert.equal(agent.result("startup"), "unknown");
    await agent.clock.advance(0);
    assert.equal(agent.result("startup"), "success");
    agent.observe({ web: { id: id("web-3") } });
    assert.equal(agent.result("startup"), "unknown");
    assert.equal(agent.result("readiness"), "failure");
  });
});
