import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock, settle } from "../../test/support/fake-clock.ts";
import { Ledger, silentLogger, TaskScope } from "../base/index.ts";
import type { Container, ContainerId, IdentifiedPod, PodEvent, PodUid, Probe } from "../model/index.ts";
import type { ProbeOutcome } from "./outcome.ts";
import type { ProbeKind, ProbeMeasurement, ProbeResult, ProbeStore, SavedResult } from "./ports.ts";
import { Probes } from "./probes.ts";
import type { SeenContainer } from "./worker.ts";

/** A store as the file store behaves, without files. */
class MemoryStore implements ProbeStore {
  readonly saved = new Map<PodUid, readonly SavedResult[]>();
  saves = 0;
  load(uid: PodUid): readonly SavedResult[] | undefined {
    return this.saved.get(uid);
  }
  async save(uid: PodUid, results: readonly SavedResult[]): Promise<void> {
    await settle(1);
    this.saves++;
    this.saved.set(uid, results);
  }
  async remove(uid: PodUid): Promise<void> {
    this.saved.delete(uid);
  }
}

type Answer = ProbeOutcome["type"] | "hang" | ProbeOutcome;

/** Probes of one agent's life, the network behind them being a table of answers by port. */
class Agent implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly scope = new TaskScope();
  readonly store: MemoryStore;
  readonly probes: Probes;
  readonly ledger: Ledger<PodUid>;
  readonly events: string[] = [];
  readonly changes: string[] = [];
  readonly attempts: { readonly at: number; readonly port: number; readonly host: string }[] = [];
  readonly measured: ProbeMeasurement[] = [];
  /** What the port answers, at once or after a while; a list is used up in turn, its last entry for good. */
  readonly answers = new Map<number, readonly Answer[]>();
  attemptMs = 0;
  readonly #start: number;

  constructor({ clock = new FakeClock(), store = new MemoryStore() } = {}) {
    this.clock = clock;
    this.store = store;
    this.#start = clock.now();
    this.ledger = new Ledger(clock);
    this.probes = new Probes({
      clock,
      log: silentLogger,
      scope: this.scope,
      store,
      ledger: this.ledger,
      recordEvent: (_, { type, reason, message, fieldPath }: PodEvent) => {
        this.events.push(`${type} ${reason} ${fieldPath}: ${message}`);
      },
      onProbe: (measurement) => this.measured.push(measurement),
      run: async (target, _timeoutMs, signal) => {
        assert.ok(target.type === "tcp");
        this.attempts.push({ at: this.clock.now() - this.#start, port: target.port, host: target.host });
        if (this.attemptMs > 0) await this.clock.sleep(this.attemptMs, signal);
        return this.#answer(target.port, signal);
      },
    });
    this.probes.onChange((_, container, kind, result) => this.changes.push(`${container} ${kind} ${result}`));
  }

  async #answer(port: number, signal: AbortSignal): Promise<ProbeOutcome> {
    const [answer = "success", ...rest] = this.answers.get(port) ?? [];
    if (rest.length > 0) this.answers.set(port, rest);
    if (typeof answer === "object") return answer;
    switch (answer) {
      case "hang":
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
      case "success":
        return { type: "success" };
      case "error":
        return { type: "error", state: "unknown", message: "broken" };
      default:
        return { type: answer, output: "ill" };
    }
  }

  /** When the port was tried, in milliseconds since the agent started. */
  times(port: number): readonly number[] {
    return this.attempts.filter((attempt) => attempt.port === port).map(({ at }) => at);
  }

  observe(
    containers: Record<string, Partial<SeenContainer>>,
    uid = "u1",
    podIp: string | undefined = "10.0.0.1",
  ): void {
    const seen = Object.entries(containers).map(([name, container]): [string, SeenContainer] => [
      name,
      {
        id: `${name}-1` as ContainerId,
        state: "running",
        startedAt: this.clock.now(),
        exitCode: 0,
        ...container,
      },
    ]);
    this.probes.observe(uid as PodUid, { containers: new Map(seen), podIp, hostIp: "192.168.0.1" });
  }

  result(kind: ProbeKind, container = "web", uid = "u1"): ProbeResult | undefined {
    return this.probes.result(uid as PodUid, container, kind);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
    assert.equal(this.clock.pendingTimers, 0, "a timer was left behind");
  }
}

const ports = { liveness: 1, readiness: 2, startup: 3 } as const;
const u1 = "u1" as PodUid;
const id = (text: string): ContainerId => text as ContainerId;

function probe(kind: ProbeKind, settings: Partial<Probe> = {}): Partial<Container> {
  return { [`${kind}Probe`]: { tcpSocket: { port: ports[kind] }, periodSeconds: 10, ...settings } };
}

function podOf(
  containers: readonly Container[],
  spec: Partial<IdentifiedPod["spec"]> = {},
  metadata: Partial<IdentifiedPod["metadata"]> = {},
): IdentifiedPod {
  return { metadata: { name: "p", namespace: "ns", uid: "u1", ...metadata }, spec: { containers, ...spec } };
}

const web = (...probes: Partial<Container>[]): Container => Object.assign({ name: "web" }, ...probes);

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
    const results = agent.probes.forPod(u1);
    const instance = (text: string) => ({ id: id(text), name: "web", state: "running", exitCode: 0 }) as const;
    assert.equal(results.liveness(instance("web-1")), "failure");
    assert.equal(results.liveness(instance("web-2")), "success");
    assert.equal(results.startup(instance("web-1")), undefined);
    assert.equal(results.started(instance("web-1")), true);
    assert.equal(results.ready(instance("web-1")), true);
    assert.equal(results.ready(instance("web-2")), false);
    assert.equal(results.ready({ ...instance("web-1"), state: "exited" }), false);
  });
});
