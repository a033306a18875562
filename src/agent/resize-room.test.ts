// Resizes that the node has no room for, and promises that can't be saved, on virtual time.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { both, conditions, container, given, mi, pod, restartFor, start } from "../../test/support/resizing.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import { fnv1a32, type IdentifiedPod, type PodUid } from "../ground/model/index.ts";
import type { AdmissionHandler } from "../pod/registry/index.ts";

describe("when there is no room", () => {
  /** Two CPUs for all pods, by what they were promised. */
  const twoCpus: AdmissionHandler = (asking, others) => {
    const cpus = (of: IdentifiedPod): number =>
      of.spec.containers.reduce(
        (sum, { resources }) => sum + Number.parseInt(resources?.requests?.["cpu"] ?? "0", 10),
        0,
      );
    const used = others
      .filter(({ metadata }) => metadata.uid !== asking.metadata.uid)
      .reduce((sum, of) => sum + cpus(of), 0);
    if (used + cpus(asking) <= 2_000) return { type: "admitted" };
    return { type: "rejected", reason: "OutOfcpu", message: `${used} of 2000 are taken` };
  };
  const asking = (name: string, cpu: string, generation: number, priority = 0): IdentifiedPod =>
    pod([container(name, both({ cpu }))], generation, { name, priority });

  test("resizes wait, and happen by priority when a pod leaves; no newcomer is told of more than there is", async () => {
    await using node = await start({ handlers: [twoCpus] });
    await node.want(asking("a", "500m", 1), asking("b", "500m", 1, 10), asking("big", "1000m", 1));
    await node.until("they run", () => node.running().length === 3);
    await node.want(asking("a", "1000m", 2));
    await node.want(asking("b", "1500m", 2, 10));
    await node.advance(1_000);
    for (const name of ["a", "b"]) {
      const [pending] = conditions(node, name);
      assert.deepEqual([pending?.type, pending?.reason], ["PodResizePending", "Deferred"]);
      assert.equal(node.container(name, name).resources?.requests?.["cpu"], "500m");
    }
    await node.drop("big");
    await node.until(
      "the more important one has it",
      () => conditions(node, "b").length === 0 && node.container("b", "b").resources?.requests?.["cpu"] === "1500m",
    );
    assert.equal(conditions(node, "a")[0]?.reason, "Deferred", "there is no room for both");
    await node.want(asking("b", "500m", 3, 10));
    await node.until("the other has it, too", () => node.container("a", "a").resources?.requests?.["cpu"] === "1000m");
    assert.deepEqual(conditions(node, "a"), []);
  });

  test("who had its turn before somebody gave back what it waits for has another one at once", async () => {
    const amount = ({ spec }: IdentifiedPod, resource: string): number =>
      Number.parseInt(spec.containers[0]?.resources?.requests?.[resource] ?? "0", 10);
    const fits: AdmissionHandler = (wanted, others) => {
      const rivals = others.filter(({ metadata }) => metadata.uid !== wanted.metadata.uid);
      const lacks = ["cpu", "memory"].find(
        (resource) => [wanted, ...rivals].reduce((sum, each) => sum + amount(each, resource), 0) > 1000,
      );
      if (lacks === undefined) return { type: "admitted" };
      return { type: "rejected", reason: `OutOf${lacks}`, message: `there is no ${lacks} left` };
    };
    await using node = await start({ handlers: [fits] });
    const sized = (name: string, cpu: string, memory: string, generation: number, priority = 0): IdentifiedPod =>
      pod([container(name, both({ cpu, memory }))], generation, { name, priority });
    await node.want(sized("a", "300m", "300Mi", 1, 10), sized("b", "600m", "300Mi", 1), sized("c", "100m", "400Mi", 1));
    await node.until("they run", () => node.running().length === 3);
    await node.want(sized("a", "600m", "300Mi", 2, 10));
    await node.want(sized("b", "100m", "500Mi", 2));
    await node.advance(1_000);
    for (const name of ["a", "b"]) assert.equal(conditions(node, name)[0]?.reason, "Deferred");
    await node.drop("c");
    await node.until("one has the memory it waits for", () => conditions(node, "b").length === 0);
    const waitedMs = await node.until("the other has its CPUs", () => conditions(node, "a").length === 0);
    assert.ok(waitedMs < 5_000, `it waited ${waitedMs} ms more`);
  });

  test("who asks why is told the time at which all that wait are tried again", async () => {
    await using node = await start({ handlers: [twoCpus] });
    await node.want(asking("a", "500m", 1), asking("b", "500m", 1), asking("big", "1000m", 1));
    await node.until("they run", () => node.running().length === 3);
    const nextTryAt = (name: string): number => {
      const { reason, nextTryAt: at = 0 } = node.engine.ledger.read(name as PodUid)?.blocker ?? {};
      assert.equal(reason, "ResizeDeferred");
      return at;
    };
    await node.want(asking("a", "1000m", 2));
    await node.advance(100_000);
    await node.want(asking("b", "1500m", 2));
    await node.advance(1_000);
    const first = nextTryAt("a");
    assert.equal(nextTryAt("b"), first);
    await node.advance(first - node.clock.now() + 1_000);
    for (const name of ["a", "b"]) assert.equal(nextTryAt(name), first + 3 * 60_000);
  });

  test("who gives nothing back gives nobody else another turn", async () => {
    const judged: string[] = [];
    const noting: AdmissionHandler = (wanted, others) => {
      judged.push(wanted.metadata.name);
      return twoCpus(wanted, others);
    };
    await using node = await start({ handlers: [noting] });
    await node.want(asking("a", "900m", 1), asking("b", "900m", 1), asking("c", "100m", 1));
    await node.until("they run", () => node.running().length === 3);
    await node.want(asking("a", "1500m", 2), asking("b", "1500m", 2));
    judged.length = 0;
    await node.want(pod([container("c", both({ cpu: "100m" }, { cpu: "200m" }))], 2, { name: "c" }));
    await node.until("it has it", () => node.container("c", "c").resources?.limits?.["cpu"] === "200m");
    assert.deepEqual(judged, ["c"]);
    await node.want(asking("c", "50m", 3));
    await node.until("it has less", () => node.container("c", "c").resources?.limits?.["cpu"] === "50m");
    assert.deepEqual(judged, ["c", "c", "a", "b"]);
  });

  test("a restart of the agent keeps what was promised, and goes on waiting", async () => {
    await using node = await start({ handlers: [twoCpus] });
    // It is the first that the next life of the agent hears of: a place that looks free then is not.
    await node.want(asking("b", "500m", 1), asking("a", "1500m", 1));
    await node.until("they run", () => node.running().length === 2);
    await node.want(asking("b", "1000m", 2));
    await node.advance(1_000);
    node.intend({ ...asking("b", "1000m", 2), status: node.status("b") });
    await node.restart();
    await node.until("it is looked at", () => conditions(node, "b")[0]?.reason === "Deferred");
    await node.advance(1_000);
    assert.equal(conditions(node, "b")[0]?.reason, "Deferred");
    assert.equal(node.events.filter((event) => event.startsWith("b ResizeDeferred")).length, 1, "users know already");
    assert.equal(node.running().length, 2);
    assert.equal(node.container("b", "b").resources?.requests?.["cpu"], "500m");
    await node.drop("a");
    await node.until("it has it", () => node.container("b", "b").resources?.requests?.["cpu"] === "1000m");
    assert.equal(node.container("b", "b").restartCount, 0);
  });
});

test("a promise that is lost is read off what was given: what waits for room goes on waiting", async () => {
  const full: AdmissionHandler = (wanted) => {
    const asksForMore = wanted.spec.containers.some(({ resources }) => resources?.requests?.["cpu"] === "900m");
    return asksForMore ? { type: "rejected", reason: "OutOfcpu", message: "all are taken" } : { type: "admitted" };
  };
  await using node = await start({ handlers: [full] });
  const asking = (cpu: string, generation: number): IdentifiedPod =>
    pod(
      [
        container("main", both({ cpu, memory: "64Mi" })),
        container("anew", both({ cpu }), restartFor("cpu")),
        container("other", { limits: { memory: "64Mi", "example.com/dongle": "1" } }),
      ],
      generation,
    );
  await node.want(asking("100m", 1));
  await node.until("it runs", () => node.running().length === 3);
  await node.want(asking("900m", 2));
  await node.until("it waits", () => conditions(node)[0]?.reason === "Deferred");
  node.intend({ ...asking("900m", 2), status: node.status("web") });
  await node.stop();
  writeFileSync(join(node.rootDir, "allocated_pods_state"), '{"data":"{');
  await node.restart();
  await node.advance(60_000);
  assert.deepEqual(
    conditions(node).map(({ type, reason }) => [type, reason]),
    [["PodResizePending", "Deferred"]],
  );
  assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 64 * mi });
  assert.deepEqual(node.container("web", "main").resources, both({ cpu: "100m", memory: "64Mi" }));
  assert.deepEqual(node.container("web", "other").resources?.limits, { memory: "64Mi", "example.com/dongle": "1" });
  for (const name of ["main", "anew", "other"]) assert.equal(node.container("web", name).restartCount, 0, name);
});

describe("when the promise can't be saved", () => {
  for (const policy of [{}, restartFor("cpu")]) {
    test(`nothing is given, it is said, and all else goes on: ${JSON.stringify(policy)}`, async () => {
      await using node = await start();
      const asking = (cpu: string, generation: number): IdentifiedPod =>
        pod([container("main", both({ cpu }), policy), container("ends", both({ cpu: "50m" }))], generation);
      node.runtime.behave("ends", exitsAfter(60_000, 1));
      await node.want(asking("100m", 1));
      await node.until("it runs", () => node.running().length === 2);
      const file = join(node.rootDir, "allocated_pods_state");
      // A file can't take the place of a directory with something in it.
      rmSync(file);
      mkdirSync(join(file, "in the way"), { recursive: true });
      await node.want(asking("300m", 2));
      await node.until("it is said", () => conditions(node)[0]?.reason === "Error");
      assert.equal(conditions(node)[0]?.type, "PodResizeInProgress");
      assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 0 });
      await node.until("what ended has started again", () => node.container("web", "ends").restartCount === 1);
      assert.equal(node.container("web", "main").restartCount, 0);
      rmSync(file, { recursive: true });
      await node.until("it is done", () => conditions(node).length === 0);
      assert.deepEqual(given(node, "main"), { shares: 307, quota: 30_000, memory: 0 });
      assert.equal(node.container("web", "main").restartCount, "resizePolicy" in policy ? 1 : 0);
    });
  }
});

test("files that another agent wrote with amounts that are no texts do not stop this one", async () => {
  await using node = await start();
  const resources = both({ cpu: "100m", memory: "64Mi" });
  await node.want(pod([container("main", resources)], 1), pod([container("main", resources)], 1, { name: "other" }));
  await node.until("they run", () => node.running().length === 2);
  await node.stop();
  for (const spoilt of [5, null, true, ["1"], { a: "1" }, "1e999999999", "9".repeat(5_000)]) {
    for (const name of ["allocated_pods_state", "actuated_pods_state"]) {
      const entry = { ContainerResources: { main: { requests: { cpu: spoilt }, limits: { memory: spoilt } } } };
      const right = { ContainerResources: { main: resources } };
      const data = JSON.stringify({ entries: { web: entry, other: right } });
      writeFileSync(join(node.rootDir, name), JSON.stringify({ data, checksum: fnv1a32(`(string)${data}`) }));
    }
    await node.restart();
    await node.until("they are looked at", () => ["web", "other"].every((uid) => node.phase(uid) === "Running"));
    await node.advance(60_000);
    assert.equal(node.container("other", "main").restartCount, 0, String(spoilt));
    assert.equal(node.container("web", "main").restartCount, 0, String(spoilt));
    assert.deepEqual(given(node, "main"), { shares: 102, quota: 10_000, memory: 64 * mi });
    await node.stop();
  }
});

test("what was promised to pods that went while no agent was there is forgotten", async () => {
  await using node = await start();
  await node.want(
    pod([container("main", both({ cpu: "100m" }))], 1),
    pod([container("gone", both({ cpu: "100m" }))], 1, { name: "gone" }),
  );
  await node.until("they run", () => node.running().length === 2);
  node.forget("gone");
  await node.restart();
  await node.until("it is gone", () => node.running().length === 1);
  await node.advance(1_000);
  for (const file of ["allocated_pods_state", "actuated_pods_state"]) {
    const { data } = JSON.parse(readFileSync(join(node.rootDir, file), "utf8")) as { readonly data: string };
    assert.deepEqual(Object.keys((JSON.parse(data) as { readonly entries: object }).entries), ["web"], file);
  }
});
