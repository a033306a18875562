// Containers that are killed to be started anew, on virtual time over the simulated runtime.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";

for (const { what, initContainers, fails } of [
  { what: "after the init containers", initContainers: [{ name: "setup", image: "busybox:1" }], fails: 0 },
  { what: "once one can be had", initContainers: [], fails: 1 },
]) {
  test(`a container that ended well because its sandbox was lost starts again in the next, ${what}`, async () => {
    await using node = await TestEngine.start();
    node.runtime.behave("setup", exitsAfter(500, 0));
    const onTerm = [{ do: "exit", code: 0 }] as const;
    node.runtime.behave("main", { type: "runs", steps: [{ do: "sleepForever" }], onTerm });
    const containers = [{ name: "main", image: "busybox:1" }];
    await node.want(enginePod("job", { restartPolicy: "OnFailure", initContainers, containers }));
    await node.until("it runs", () => node.running().includes("job/main"));
    const effect = { type: "error", code: "Internal", message: "no network" } as const;
    if (fails > 0) node.runtime.faults.add({ operation: "runPodSandbox", times: fails, effect });
    node.runtime.killSandbox(node.runtime.sandboxes()[0]?.id ?? "");
    await node.until("it runs again", () => node.container("job", "main").restartCount === 1);
    assert.equal(node.phase("job"), "Running");
    node.runtime.exit("main", 0);
    await node.until("it has done its work", () => node.phase("job") === "Succeeded");
    assert.equal(node.container("job", "main").restartCount, 1);
  });
}
