import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { refusal } from "../../test/support/fake-api.ts";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import { resources } from "../connections/kube/index.ts";

const readyOf = (whole: WholeAgent): string | undefined =>
  whole.api.object(resources.nodes, { name: "node-1" })?.status?.conditions?.find(({ type }) => type === "Ready")
    ?.status;

test("building starts nothing: no call, no request, no file, no timer, no task", async () => {
  await using whole = await WholeAgent.build();
  await whole.clock.advance(60_000);
  assert.deepEqual([...whole.runtime.callCounts()], []);
  assert.deepEqual(whole.api.calls, []);
  assert.equal(existsSync(join(whole.directory, "root")), false);
  assert.equal(whole.clock.pendingTimers, 0);
  assert.equal(whole.agent.parts.base.scope.size, 0);
});

test("a pod of the API runs and is reported; a deleted one goes from runtime, cgroups and API", async () => {
  await using whole = await WholeAgent.start();
  await whole.until("the node is ready", () => readyOf(whole) === "True");
  whole.create("web");
  await whole.until("it runs", () => whole.pod("web")?.status?.phase === "Running");
  assert.deepEqual(whole.running(), ["web/main"]);
  const kept = await whole.cgroups.directories("/cgroup/kubepods/besteffort");
  assert.equal(kept.length, 1);
  whole.delete("web");
  await whole.until("it is gone", () => whole.pod("web") === undefined && whole.runtime.sandboxes().length === 0);
  assert.deepEqual(await whole.cgroups.directories("/cgroup/kubepods/besteffort"), []);
});

test("while the API server is away pods run on, and what happened meanwhile is told afterwards", async () => {
  await using whole = await WholeAgent.start();
  whole.create("web");
  await whole.until("it runs", () => whole.pod("web")?.status?.phase === "Running");
  whole.api.trouble = () => {
    throw refusal(503, "ServiceUnavailable", "away");
  };
  whole.api.cutWatches();
  whole.runtime.exit("main", 1);
  await whole.until(
    "it was started again",
    () => whole.running().length === 1 && whole.runtime.containers().length > 1,
  );
  assert.equal(whole.pod("web")?.status?.containerStatuses?.[0]?.restartCount, 0, "nobody could be told");
  whole.create("later");
  await whole.advance(30_000);
  whole.api.trouble = () => {};
  await whole.until("all is told", () => whole.pod("web")?.status?.containerStatuses?.[0]?.restartCount === 1);
  await whole.until("the new one runs", () => whole.pod("later")?.status?.phase === "Running");
});

test("a runtime that comes late: nothing is started, then everything", async () => {
  await using whole = await WholeAgent.start({ runtimeIsLate: true });
  whole.create("web");
  await whole.advance(60_000);
  assert.equal(whole.agent.parts.base.link.connected, undefined);
  assert.deepEqual(whole.api.calls, [], "the cluster is joined when there is something to run pods with");
  whole.runtime.start();
  await whole.until("it runs", () => whole.pod("web")?.status?.phase === "Running");
});

test("a machine of its own runs manifests, and holds their pods to their limits of local storage", async () => {
  await using whole = await WholeAgent.build({ standalone: true });
  mkdirSync(join(whole.directory, "manifests"));
  const manifest = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "big", namespace: "default" },
    spec: { containers: [{ name: "main", image: "busybox:1", resources: { limits: { "ephemeral-storage": "1k" } } }] },
  };
  writeFileSync(join(whole.directory, "manifests", "big.json"), JSON.stringify(manifest));
  whole.run();
  await whole.until("it runs", () => whole.running().length === 1);
  const [pod] = whole.agent.parts.sight.mux.pods();
  const { namespace, name, uid } = pod?.metadata ?? {};
  const logs = join(whole.directory, "logs", `${namespace}_${name}_${uid}`, "main");
  mkdirSync(logs, { recursive: true });
  writeFileSync(join(logs, "9.log"), "x".repeat(100_000));
  await whole.until("it is evicted", () =>
    whole.agent.parts.engine.views.pods().some(({ status }) => status?.reason === "Evicted"),
  );
});

test("a static pod that the node refuses is shown by a mirror, which goes with its manifest", async () => {
  await using whole = await WholeAgent.start();
  await whole.until("the node is ready", () => readyOf(whole) === "True");
  const manifest = join(whole.directory, "manifests", "choosy.json");
  const spec = { nodeSelector: { nobody: "has-this" }, containers: [{ name: "main", image: "busybox:1" }] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "choosy", namespace: "default" }, spec };
  mkdirSync(join(whole.directory, "manifests"), { recursive: true });
  writeFileSync(manifest, JSON.stringify(pod));
  await whole.until("it is refused", () => whole.pod("choosy-node-1")?.status?.reason === "NodeAffinity");
  rmSync(manifest);
  await whole.until("its mirror is gone", () => whole.pod("choosy-node-1") === undefined);
});

describe("a stop in the middle of the start ends it in order", () => {
  for (const what of ["holdLock", "swaps", "prepareDirectories", "tuneProcess", "listen", "addresses"]) {
    test(what, async () => {
      const done: string[] = [];
      let goOn = (): void => {};
      await using whole = await WholeAgent.start({
        onHost: async (step) => {
          done.push(step);
          if (step === what) await new Promise<void>((resolve) => (goOn = resolve));
        },
      });
      await whole.until("it is there", () => done.includes(what));
      const stopping = whole.stop();
      goOn();
      await stopping;
      assert.equal(whole.outcome, "stopped");
      assert.equal(whole.agent.parts.base.scope.size, 0);
      assert.equal(whole.clock.pendingTimers, 0);
      const after = done.slice(done.indexOf(what) + 1).filter((step) => step !== "release");
      assert.deepEqual(after, [], "nothing more is done to the machine");
    });
  }

  test("while the runtime is waited for", async () => {
    await using whole = await WholeAgent.start({ runtimeIsLate: true });
    await whole.advance(5_000);
    await whole.stop();
    assert.deepEqual([whole.outcome, whole.clock.pendingTimers], ["stopped", 0]);
  });

  test("while the runtime has yet to say what runs", async () => {
    await using whole = await WholeAgent.build();
    const fault = whole.runtime.faults.add({ operation: "listPodSandbox", effect: { type: "hang" } });
    whole.run();
    await whole.advance(5_000);
    await whole.stop();
    fault.remove();
    assert.deepEqual([whole.outcome, whole.agent.parts.base.scope.size], ["stopped", 0]);
  });

  test("with pods that run: they are left alone", async () => {
    await using whole = await WholeAgent.start();
    whole.create("web");
    await whole.until("it runs", () => whole.running().length === 1);
    await whole.stop();
    assert.deepEqual(whole.running(), ["web/main"]);
    assert.equal(whole.clock.pendingTimers, 0);
  });
});
