import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CriClient, PodSandboxConfig } from "../../connections/cri/index.ts";
import { systemClock } from "../../ground/base/index.ts";
import { FakeRuntime } from "./fake-runtime.ts";
import { serveRuntime } from "./serve.ts";

const sandbox = (uid: string) => ({
  config: PodSandboxConfig.fromPartial({ metadata: { name: uid, namespace: "ns", uid } }),
  runtimeHandler: "",
});

test("over gRPC: one pod whose sandbox hangs holds up no other pod", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hollow-serve-"));
  const fake = new FakeRuntime({ clock: systemClock });
  const server = await serveRuntime(fake, join(directory, "runtime.sock"));
  const client = new CriClient({ runtimeEndpoint: server.endpoint, requestTimeoutMs: 60_000 }, { clock: systemClock });
  t.after(async () => {
    client.close();
    await server.kill();
    await rm(directory, { recursive: true });
  });
  fake.faults.add({ operation: "runPodSandbox", podUid: "stuck", effect: { type: "hang" } });
  const giveUp = new AbortController();
  const stuck = client.runtime.runPodSandbox(sandbox("stuck"), { signal: giveUp.signal });
  const outcome = assert.rejects(stuck, (error) => error === giveUp.signal.reason);
  const others = Array.from({ length: 50 }, (_, number) => client.runtime.runPodSandbox(sandbox(`uid-${number}`)));
  assert.equal(new Set((await Promise.all(others)).map(({ podSandboxId }) => podSandboxId)).size, 50);
  assert.deepEqual(
    client.health().pending.map(({ operation }) => operation),
    ["runPodSandbox"],
  );
  giveUp.abort();
  await outcome;
  assert.equal((await client.runtime.listPodSandbox({ filter: undefined })).items.length, 50);
});

test("a server takes over the socket a killed one left, and frees it when it ends", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "hollow-serve-"));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, "runtime.sock");
  const fake = new FakeRuntime({ clock: systemClock });
  for (let round = 0; round < 2; round++) {
    await using server = await serveRuntime(fake, path);
    const client = new CriClient(
      { runtimeEndpoint: server.endpoint, requestTimeoutMs: 60_000 },
      { clock: systemClock },
    );
    assert.equal((await client.runtime.version({ version: "" })).runtimeName, "containerd");
    client.close();
  }
});
