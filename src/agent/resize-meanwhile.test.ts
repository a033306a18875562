// Resizes while something else happens to the pod, the runtime or the agent, on virtual time.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { both, conditions, container, given, impatient, mi, pod, start, watched } from "../../test/support/resizing.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import type { IdentifiedPod } from "../ground/model/index.ts";

test("a resize that is accepted while its pod is taken over is said to be done when it is, and once", async () => {
  let isFull = true;
  await using node = await start({
    handlers: [
      ({ spec }) =>
        isFull && spec.containers[0]?.resources?.requests?.["cpu"] === "900m"
          ? { type: "rejected", reason: "OutOfcpu", message: "there is no room" }
          : { type: "admitted" },
    ],
  });
  await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
  await node.until("it runs", () => node.phase("web") === "Running");
  await node.want(pod([container("main", both({ cpu: "900m" }))], 2));
  await node.advance(1_000);
  assert.equal(conditions(node)[0]?.reason, "Deferred");
  isFull = false;
  await node.restart();
  await node.until("it has it", () => node.container("web", "main").resources?.limits?.["cpu"] === "900m");
  await node.advance(10_000);
  const told = node.events.filter((event) => event.startsWith("web ResizeCompleted"));
  assert.equal(told.length, 1, told.join("\n"));
  assert.match(told[0] ?? "", /"cpu":"900m"/);
});

describe("whatever happens meanwhile", () => {
  test("memory that is in use is not taken away: it is said, and tried again", async () => {
    await using node = await start();
    const usage = { cpuMillicores: 1, memoryBytes: 100 * mi };
    node.runtime.behave("main", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die", usage });
    await node.want(pod([container("main", both({ memory: "200Mi" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(pod([container("main", both({ memory: "64Mi" }))], 2));
    await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
    const [inProgress] = conditions(node);
    assert.equal(inProgress?.type, "PodResizeInProgress");
    assert.equal(
      inProgress?.message,
      `cannot decrease memory limits: attempting to set container "main" memory limit (${64 * mi}) below current usage (${100 * mi})`,
    );
    assert.equal(node.container("web", "main").resources?.limits?.["memory"], "200Mi");
    await node.want(pod([container("main", both({ memory: "128Mi" }))], 3));
    await node.until("it is done", () => node.container("web", "main").resources?.limits?.["memory"] === "128Mi");
    assert.deepEqual(conditions(node), []);
  });

  test("memory that is given back later is taken away then, without anybody asking again", async () => {
    await using node = await start();
    const usage = { cpuMillicores: 1, memoryBytes: 100 * mi };
    node.runtime.behave("main", { type: "runs", steps: [{ do: "sleepForever" }], onTerm: "die", usage });
    await node.want(pod([container("main", both({ memory: "200Mi" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.want(pod([container("main", both({ memory: "64Mi" }))], 2));
    await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
    usage.memoryBytes = 10 * mi;
    await node.until("it is done", () => node.container("web", "main").resources?.limits?.["memory"] === "64Mi");
    await node.until("nothing is under way", () => conditions(node).length === 0);
    assert.equal(node.container("web", "main").restartCount, 0);
  });

  test("a container in back-off starts with what it was promised meanwhile", async () => {
    await using node = await start();
    node.runtime.behave("main", exitsAfter(1_000, 1));
    await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
    await node.until("it waits", () => node.container("web", "main").state?.waiting?.reason === "CrashLoopBackOff");
    const before = node.container("web", "main").restartCount;
    await node.want(pod([container("main", both({ cpu: "300m" }))], 2));
    await node.until("it runs again", () => node.container("web", "main").restartCount === before + 1);
    assert.deepEqual(given(node, "main"), { shares: 307, quota: 30_000, memory: 0 });
    assert.deepEqual(watched(node), [], "nothing ran that could be changed");
    assert.ok(node.events.some((event) => event.startsWith("web ResizeCompleted")));
  });

  test("a runtime that refuses is asked again, and the pod says why", async () => {
    await using node = await start();
    await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    node.runtime.faults.add({
      operation: "updateContainerResources",
      times: 2,
      effect: { type: "error", code: "Internal", message: "not today" },
    });
    await node.want(pod([container("main", both({ cpu: "300m" }))], 2));
    await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
    assert.match(conditions(node)[0]?.message ?? "", /not today/);
    await node.until("it is done", () => conditions(node).length === 0);
    const told = node.events.filter((event) => event.includes("Resize")).map((event) => event.split(" ")[1]);
    assert.deepEqual(told, ["ResizeStarted:", "ResizeError:", "ResizeCompleted:"]);
    assert.deepEqual(node.container("web", "main").resources, both({ cpu: "300m" }));
    assert.equal(node.container("web", "main").restartCount, 0);
  });

  test("an agent that is ended at any call of a resize brings it to its end, and nothing restarts", async () => {
    for (let nth = 1; nth <= 10; nth++) {
      await using node = await start();
      const asking = (cpu: string, memory: string, generation: number): IdentifiedPod =>
        pod(
          [container("a", both({ cpu, memory })), container("b", both({ cpu: memory.replace("Mi", "m"), memory }))],
          generation,
        );
      await node.want(asking("100m", "64Mi", 1));
      await node.until("it runs", () => node.phase("web") === "Running");
      const before = node.calls();
      const changing = node.want(asking("700m", "128Mi", 2));
      for (let steps = 0; steps < 200 && node.calls() < before + nth; steps++) await node.clock.advance(1);
      await changing;
      await node.restart();
      await node.until(`it is done, agent ended at call ${nth}`, () => {
        const { resources } = node.container("web", "a");
        return (
          resources?.limits?.["cpu"] === "700m" &&
          resources.limits["memory"] === "128Mi" &&
          conditions(node).length === 0
        );
      });
      assert.deepEqual(given(node, "a"), { shares: 716, quota: 70_000, memory: 128 * mi });
      assert.deepEqual(given(node, "b"), { shares: 131, quota: 12_800, memory: 128 * mi });
      assert.equal(node.container("web", "a").restartCount + node.container("web", "b").restartCount, 0);
    }
  });

  test("files that are damaged are set aside; what runs goes on with what it has", async () => {
    await using node = await start();
    await node.want(pod([container("main", both({ cpu: "100m" }))], 1));
    await node.until("it runs", () => node.phase("web") === "Running");
    await node.stop();
    const file = join(node.rootDir, "allocated_pods_state");
    writeFileSync(file, readFileSync(file, "utf8").replace("100m", "900m"));
    await node.restart();
    await node.until("it is looked at", () => node.phase("web") === "Running");
    await node.advance(10_000);
    assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 0 });
    assert.equal(node.container("web", "main").restartCount, 0);
    assert.match(readFileSync(`${file}.broken`, "utf8"), /900m/);
  });
});

describe("while the pod is busy otherwise", () => {
  test("a resize that comes while an image is pulled is done when it is there: no second pull, no restart", async () => {
    await using node = await start();
    node.runtime.imageStore.publish({ name: "slow:1", pullMs: 600_000 });
    const asking = (cpu: string, generation: number): IdentifiedPod =>
      pod([container("main", both({ cpu })), container("late", both({ cpu }), { image: "slow:1" })], generation);
    await node.want(asking("100m", 1));
    await node.until("one runs", () => node.running().length === 1);
    const pulls = node.runtime.callCounts().get("pullImage");
    await node.want(asking("300m", 2));
    await node.until("both run", () => node.running().length === 2, 700_000);
    await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")), 60_000);
    const promised = { shares: 307, quota: 30_000, memory: 0 };
    assert.deepEqual([given(node, "main"), given(node, "late")], [promised, promised]);
    assert.deepEqual(conditions(node), []);
    assert.equal(node.container("web", "main").restartCount + node.container("web", "late").restartCount, 0);
    assert.equal(node.runtime.callCounts().get("pullImage"), pulls);
  });

  for (const operation of ["updateContainerResources", "containerStats", "containerStatus"] as const) {
    test(`a runtime that hangs in ${operation} is asked again; the pod says why, and others go on`, async () => {
      await using node = await start({ answers: (runtime) => impatient(runtime, operation, () => node.clock) });
      const asking = (memory: string, generation: number, name = "web"): IdentifiedPod =>
        pod([container(name, both({ memory }))], generation, { name });
      await node.want(asking("64Mi", 1), asking("64Mi", 1, "other"));
      await node.until("they run", () => node.running().length === 2);
      node.runtime.faults.add({ operation, podUid: "web", times: 2, effect: { type: "hang" } });
      await node.want(asking("32Mi", 2));
      await node.advance(1_000);
      await node.want(asking("128Mi", 2, "other"));
      await node.until(
        "the other is done",
        () => node.events.some((event) => event.startsWith("other ResizeCompleted")),
        30_000,
      );
      await node.until("it is done", () => node.events.some((event) => event.startsWith("web ResizeCompleted")));
      assert.deepEqual(given(node, "web"), { shares: 2, quota: 0, memory: 32 * mi });
      assert.deepEqual(conditions(node), []);
      assert.equal(node.container("web", "web").restartCount, 0);
    });
  }
});
