import assert from "node:assert/strict";
import { test } from "node:test";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import { ignoresTerm } from "../beside/hollow/index.ts";

test("a pod is shown until its end, and where nothing is pinned no CPU and no memory is offered", async () => {
  await using whole = await WholeAgent.start();
  whole.runtime.behave("main", ignoresTerm());
  const shown = (): unknown => whole.podResources?.activePods().map(({ metadata }) => metadata.name);
  whole.create("web");
  await whole.until("it runs", () => whole.running().includes("web/main"));
  assert.deepEqual(shown(), ["web"]);
  assert.deepEqual(whole.podResources?.allocatable(), { devices: [], cpus: [], memory: [] });
  whole.delete("web", 60);
  await whole.advance(30_000);
  assert.ok(whole.running().includes("web/main"), "it takes its time to end");
  assert.deepEqual(shown(), ["web"]);
  await whole.until("it has ended", () => whole.running().length === 0);
  await whole.until("it is not shown any more", () => whole.podResources?.activePods().length === 0, 5_000);
});
