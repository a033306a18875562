// What a single pod can do to the agent by what it says and by how it ends, on virtual time.
import assert from "node:assert/strict";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import type { PodUid } from "../model/index.ts";

const container = { name: "main", image: "busybox:1" };

test("a hook that fails with megabytes of output leaves a few kilobytes behind", async () => {
  await using node = await TestEngine.start({ source: "api" });
  const stdout = "\0".repeat(8_000_000);
  node.runtime.onExec(() => ({ stdout, stderr: stdout, exitCode: 1 }));
  const lifecycle = { postStart: { exec: { command: ["sh", "-c", "x".repeat(500_000)] } } };
  await node.want(enginePod("web", { containers: [{ ...container, lifecycle }] }));
  await node.until("it has failed twice", () => node.container("web", "main").restartCount >= 2);
  await node.until("the failure shows", () => node.container("web", "main").state?.waiting?.message !== undefined);
  assert.ok(JSON.stringify(node.status("web")).length < 64_000);
  assert.ok(JSON.stringify(node.engine.ledger.read("web" as PodUid)).length < 64_000);
  assert.ok((await stat(join(node.rootDir, "pods", "web", "nodelet.json"))).size < 64_000);
  await node.drop("web");
  await node.until("it is gone", () => node.runtime.sandboxes().length === 0);
  assert.ok(JSON.stringify(node.events).length < 64_000);
});
