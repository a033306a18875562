// Static pods that another agent started go on under this one. Another agent is one that reckons UIDs in another way:
// ours does so for manifests that lie elsewhere.
import assert from "node:assert/strict";
import { appendFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { isReady } from "../support/agent.ts";
import { idOf, statusOf, TestNode } from "../support/test-node.ts";

test("static pods of another agent keep their containers and data; one that was edited meanwhile is started anew", async () => {
  await using node = await TestNode.start();
  const { agent } = node;
  const data = { volumes: [{ name: "data", emptyDir: {} }] };
  const mounted = { volumeMounts: [{ name: "data", mountPath: "/data" }] };
  await agent.apply("kept", { ...data, containers: [node.server("main", mounted)] }, { labels: { app: "kept" } });
  await agent.apply("edited", { containers: [node.server("main")] });
  await agent.apply("done", { restartPolicy: "Never", containers: [node.shell("main", "exit 0")] });
  const kept = await agent.until("kept", "ready", isReady);
  const edited = await agent.until("edited", "ready", isReady);
  const done = await agent.until("done", "done", ({ status }) => status?.phase === "Succeeded");
  await node.sh(kept, "main", "echo precious > /data/file");
  await agent.stop();

  const elsewhere = join(node.containerd.stateDir, "manifests-elsewhere");
  await rename(agent.manifests, elsewhere);
  await rm(join(agent.rootDir, "nodelet"), { recursive: true });
  await appendFile(join(elsewhere, "edited.yaml"), "\n");
  await agent.configure({ staticPodPath: elsewhere });
  for (const round of ["first start", "second start"]) {
    await agent.launch();
    const keptNow = await agent.until("kept", "ready", isReady);
    assert.equal(keptNow.metadata?.uid, kept.metadata?.uid, round);
    assert.equal(idOf(statusOf(keptNow, "main")), idOf(statusOf(kept, "main")), round);
    assert.equal(await node.sh(keptNow, "main", "cat /data/file"), "precious");
    const doneNow = await agent.until("done", "done", ({ status }) => status?.phase === "Succeeded");
    assert.equal(
      idOf(statusOf(doneNow, "main")),
      idOf(statusOf(done, "main")),
      `${round}: what is done is not done again`,
    );
    const editedNow = await agent.until("edited", "ready", isReady);
    assert.notEqual(editedNow.metadata?.uid, edited.metadata?.uid, round);
    await agent.stop();
  }
});
