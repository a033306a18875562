import assert from "node:assert/strict";
import { test } from "node:test";
import { CriError } from "../../connections/cri/index.ts";
import { silentLogger } from "../../ground/base/index.ts";
import type { ContainerId } from "../../ground/model/index.ts";
import { ContainerRemoval } from "./container-removal.ts";

const signal = new AbortController().signal;

/** As containerd: refuses what is being removed already, knows nothing of what is gone. */
class RemovingRuntime {
  readonly known = new Set(["one", "two"]);
  readonly removing = new Map<string, () => void>();

  async stopContainer(): Promise<Record<never, never>> {
    return {};
  }

  async removeContainer({ containerId }: { readonly containerId: string }): Promise<Record<never, never>> {
    if (!this.known.has(containerId)) throw new CriError("NotFound", "removeContainer", "no such container");
    if (this.removing.has(containerId)) {
      throw new CriError("Unknown", "removeContainer", "container is already in removing state");
    }
    await new Promise<void>((resolve) => this.removing.set(containerId, resolve));
    this.removing.delete(containerId);
    this.known.delete(containerId);
    return {};
  }
}

const dead = (id: string) => ({
  id: id as ContainerId,
  logPath: "",
  state: "exited" as const,
  annotations: { terminationGraceSeconds: undefined },
});

test("two who remove the same container are not in each other's way", async () => {
  const runtime = new RemovingRuntime();
  const removal = new ContainerRemoval(
    { podLogsDir: "/nowhere", legacyDir: "/nowhere" },
    { runtime, log: silentLogger },
  );
  const both = Promise.all([removal.remove(dead("one"), signal), removal.remove(dead("one"), signal)]);
  const other = removal.remove(dead("two"), signal);
  while (runtime.removing.size < 2) await new Promise((resolve) => setImmediate(resolve));
  for (const done of runtime.removing.values()) done();
  await Promise.all([both, other]);
  assert.deepEqual([...runtime.known], []);
});
