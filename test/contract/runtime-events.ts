import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerState, PodSandboxState, type RuntimeEvent, RuntimeEvents } from "../../src/connections/cri/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import { eventually, type Pods } from "./pods.ts";

export function hintContract(pods: Pods): void {
  test("runtime events: a gap first, then one for every change of a container or sandbox", async () => {
    const { runtime, containerdEvents } = pods.subject;
    const seen: RuntimeEvent[] = [];
    await using scope = new TaskScope();
    const source = containerdEvents === undefined ? {} : { containerdEvents };
    const runtimeEvents = new RuntimeEvents({ runtime, clock: systemClock, log: silentLogger, ...source });
    scope.spawn("runtime events", async (signal) => {
      for await (const hint of runtimeEvents.subscribe(signal)) seen.push(hint);
    });
    const sees = (kind: RuntimeEvent["kind"], id: string) =>
      eventually(async () => seen.find((hint) => hint.kind === kind && hint.kind !== "gap" && hint.id === id));
    await eventually(async () => seen[0]);
    assert.equal(seen[0]?.kind, "gap");
    const pod = await pods.run();
    await sees("started", pod.id);
    const id = await pods.start(pod, ["sh", "-c", "sleep 0.1; exit 2"]);
    await sees("created", id);
    await sees("started", id);
    await sees("stopped", id);
    assert.equal(
      (await pods.status(id)).state,
      ContainerState.CONTAINER_EXITED,
      "whoever looks after the hint sees it",
    );
    await pods.runtime.execSync({
      containerId: await pods.start(pod, ["sleep", "100"], { attempt: 1 }),
      cmd: ["true"],
      timeout: 1n,
    });
    await pods.runtime.stopPodSandbox({ podSandboxId: pod.id });
    await sees("stopped", pod.id);
    assert.equal((await pods.sandboxStatus(pod.id)).state, PodSandboxState.SANDBOX_NOTREADY);
    await pods.remove(pod);
    await sees("deleted", id);
    await sees("deleted", pod.id);
    assert.equal(seen.filter(({ kind }) => kind === "gap").length, 1, "an undisturbed stream has one gap");
  });
}
