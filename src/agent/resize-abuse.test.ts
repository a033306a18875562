// Resizes that nobody would ask for in earnest, on virtual time.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  both,
  conditions,
  container,
  given,
  mi,
  pod,
  restartFor,
  start,
  watched,
} from "../../test/support/resizing.ts";
import type { IdentifiedPod } from "../ground/model/index.ts";

describe("whatever is asked for", () => {
  const allocatable = () =>
    new Map([
      ["cpu", 4_000_000_000n],
      ["memory", 8_000_000_000n * 1_000_000_000n],
    ]);
  for (const { what, asked, becomes } of [
    { what: "less than the kernel can count", asked: both({ cpu: "1n", memory: "16Mi" }), becomes: [2, 1_000, 16] },
    {
      what: "limits beyond all numbers",
      asked: both({ cpu: "100m", memory: "64Mi" }, { cpu: "1e9", memory: "1e30" }),
      becomes: [102, 100_000_000_000_000, 2 ** 63 / mi],
    },
    { what: "requests beyond all numbers", asked: both({ cpu: "1e30", memory: "64Mi" }), becomes: "Infeasible" },
    { what: "memory beyond all numbers", asked: both({ cpu: "100m", memory: "9E" }), becomes: "Infeasible" },
    { what: "what is no number", asked: both({ cpu: "NaN", memory: "64Mi" }), becomes: [102, 10_000, 64] },
    {
      what: "no limit any more, which no runtime can do",
      asked: both({ cpu: "0", memory: "0" }),
      becomes: [2, 10_000, 64],
    },
  ] as const) {
    test(what, async () => {
      await using node = await start({ resizeSettings: { allocatable } });
      await node.want(
        pod([container("main", both({ cpu: "100m", memory: "64Mi" }))], 1),
        pod([container("other", both({ cpu: "100m" }))], 1, { name: "other" }),
      );
      await node.until("they run", () => node.running().length === 2);
      await node.want(pod([container("main", asked)], 2));
      await node.advance(5_000);
      if (becomes === "Infeasible") assert.equal(conditions(node)[0]?.reason, becomes);
      else {
        const [shares, quota, memory] = becomes;
        assert.deepEqual(given(node, "main"), { shares, quota, memory: memory * mi });
      }
      await node.want(pod([container("other", both({ cpu: "200m" }))], 2, { name: "other" }));
      await node.until("others are resized as ever", () =>
        node.events.some((event) => event.startsWith("other ResizeCompleted")),
      );
      await node.want(pod([container("main", both({ cpu: "300m", memory: "32Mi" }))], 3));
      await node.until("it is itself again", () => node.container("web", "main").resources?.limits?.["cpu"] === "300m");
      assert.deepEqual(given(node, "main"), { shares: 307, quota: 30_000, memory: 32 * mi });
      assert.equal(node.container("web", "main").restartCount, 0);
    });
  }

  for (const policy of [{}, restartFor("cpu", "memory")]) {
    test(`a thousand changes at once, ${JSON.stringify(policy)}`, async () => {
      await using node = await start();
      const asking = (index: number): IdentifiedPod =>
        pod([container("main", both({ cpu: `${100 + (index % 2) * 100}m` }), policy)], index + 1);
      await node.want(asking(0));
      await node.until("it runs", () => node.phase("web") === "Running");
      const before = node.calls();
      for (let index = 1; index <= 1_000; index++) {
        node.intend(asking(index));
        if (index % 20 === 0) await node.want(asking(index));
      }
      await node.want(asking(1_001));
      await node.until("it has the last of them", () => {
        const { resources, state } = node.container("web", "main");
        return state?.running !== undefined && resources?.limits?.["cpu"] === "200m" && conditions(node).length === 0;
      });
      assert.deepEqual(given(node, "main"), { shares: 204, quota: 20_000, memory: 0 });
      const { restartCount } = node.container("web", "main");
      assert.ok("resizePolicy" in policy ? restartCount <= 51 : restartCount === 0, `${restartCount} restarts`);
      assert.ok(node.calls() - before < 2_000, `${node.calls() - before} calls`);
    });
  }
});

test("hundreds of containers at once: each is told once, and the status changes twice", async () => {
  const many = 300;
  await using node = await start();
  const asking = (cpu: string, memory: string, generation: number): IdentifiedPod =>
    pod(
      Array.from({ length: many }, (_, index) => container(`c${index}`, both({ cpu, memory }))),
      generation,
    );
  await node.want(asking("10m", "8Mi", 1));
  await node.until("they run", () => node.running().length === many);
  await node.advance(60_000);
  let told = 0;
  node.engine.statuses.onChange(() => void told++);
  const processor = process.cpuUsage();
  await node.want(asking("20m", "16Mi", 2));
  const tookMs = await node.until("it is done", () =>
    node.events.some((event) => event.startsWith("web ResizeCompleted")),
  );
  const { user, system } = process.cpuUsage(processor);
  assert.deepEqual(
    watched(node).filter((change) => !change.startsWith("c")),
    ["raise memory and cpu of web", "lower memory and cpu of web"],
  );
  assert.equal(watched(node).length, many + 2);
  for (const { resources, restartCount } of node.status("web").containerStatuses ?? []) {
    assert.deepEqual([resources, restartCount], [both({ cpu: "20m", memory: "16Mi" }), 0]);
  }
  assert.equal(told, 2, "under way, and done");
  assert.ok(tookMs < 60_000, `took ${tookMs} ms on the clock`);
  assert.ok(user + system < 10_000_000, `took ${(user + system) / 1_000_000} s of a processor`);
});
