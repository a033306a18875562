import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import { never } from "../ground/base/index.ts";

test("what is removed of a pod that has succeeded costs no list of the runtime every other second", async () => {
  await using node = await TestEngine.start({ source: "api" });
  node.runtime.behave("main", exitsAfter(10, 0));
  await node.want(enginePod("job", { restartPolicy: "Never", containers: [{ name: "main", image: "busybox:1" }] }));
  await node.until("it has succeeded", () => node.status("job").phase === "Succeeded");
  await node.advance(3_600_000);
  const before = node.calls();
  await node.advance(3_600_000);
  const asUsual = node.calls() - before;
  for (const { id } of node.runtime.containers()) {
    const removal = node.runtime.runtime.removeContainer({ containerId: id }, { signal: never });
    await node.advance(1_000);
    await removal;
  }
  await node.advance(60_000);
  const since = node.calls();
  await node.advance(3_600_000);
  assert.ok(node.calls() - since <= asUsual + 10, `${node.calls() - since} calls in an hour, ${asUsual} before`);
  assert.equal(node.status("job").phase, "Succeeded");
});
