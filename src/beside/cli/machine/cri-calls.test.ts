import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { PodSandbox } from "../../../connections/cri/index.ts";
import { systemClock } from "../../../ground/base/index.ts";
import { serveRuntime } from "../../hollow/index.ts";
import { criHasImage, criRemoveSandbox, criSandboxes, criStatus } from "./cri-calls.ts";

function sandbox(id: string, uid: string): PodSandbox {
  const metadata = { name: "web", uid, namespace: "default", attempt: 3 };
  return { id, metadata, state: 1, createdAt: 2n ** 60n, labels: { k: "v" }, annotations: {}, runtimeHandler: "runc" };
}

test("a runtime is asked what it has, and told to remove it", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "cri-calls-"));
  t.after(() => rm(directory, { recursive: true }));
  const long = "x".repeat(300);
  const sandboxes = new Map([sandbox("a", "u-1"), sandbox(long, "u-2")].map((item) => [item.id, item]));
  const stopped: string[] = [];
  const conditions = ["RuntimeReady", "NetworkReady"].map((type) => ({ type, status: true, reason: "", message: "" }));
  const image = { id: "sha256:1", repoTags: [], repoDigests: [], size: 1n, username: "", pinned: false };
  await using server = await serveRuntime(
    {
      runtime: {
        status: async () => ({ status: { conditions }, info: {}, runtimeHandlers: [], features: undefined }),
        listPodSandbox: async () => ({ items: [...sandboxes.values()] }),
        stopPodSandbox: async ({ podSandboxId }) => {
          stopped.push(podSandboxId);
          return {};
        },
        removePodSandbox: async ({ podSandboxId }) => {
          sandboxes.delete(podSandboxId);
          return {};
        },
      },
      images: {
        imageStatus: async (request) => ({
          image: request.image?.image === "here" ? { ...image, uid: undefined, spec: undefined } : undefined,
          info: {},
        }),
      },
    },
    join(directory, "runtime.sock"),
  );
  const { endpoint } = server;
  assert.deepEqual(await criStatus(endpoint, systemClock), { answers: true });
  assert.deepEqual(await criSandboxes(endpoint, systemClock), [
    { id: "a", podUid: "u-1" },
    { id: long, podUid: "u-2" },
  ]);
  assert.equal(await criHasImage(endpoint, "here", systemClock), true);
  assert.equal(await criHasImage(endpoint, "elsewhere", systemClock), false);
  await criRemoveSandbox(endpoint, "a", systemClock);
  assert.deepEqual(stopped, ["a"]);
  assert.deepEqual([...sandboxes.keys()], [long]);
});

test("a runtime that is not there is named with its endpoint", async () => {
  const status = await criStatus("unix:///nowhere/runtime.sock", systemClock);
  assert.equal(status.answers, false);
  assert.match(String(!status.answers && status.error), /status at unix:\/\/\/nowhere\/runtime\.sock failed: .*ENOENT/);
});
