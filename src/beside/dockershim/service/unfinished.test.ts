import assert from "node:assert/strict";
import { test } from "node:test";
import { PodSandboxConfig } from "../../../connections/cri/index.ts";
import { never } from "../../../ground/base/index.ts";
import { EngineError, type ListedContainer } from "../engine/index.ts";
import { createdAtLabel, typeLabel } from "../mapping/labels.ts";
import type { ShimContext } from "./context.ts";
import { DockerSandboxes, type DockerSandboxPorts } from "./sandboxes.ts";

const name = "k8s_POD_p_n_u_0";

function sandbox(id: string, createdAt: bigint): ListedContainer {
  const labels = { [typeLabel]: "podsandbox", [createdAtLabel]: String(createdAt) };
  const rest = { image: "", imageId: "", state: "running", networkMode: "none", createdAt } as const;
  return { id, name, labels, ...rest };
}

/** A Docker that keeps whoever makes a container waiting until the test says how that ends. */
function slowDocker(listed: readonly ListedContainer[]) {
  let refuse: (reason: Error) => void = () => {};
  const making = new Promise<string>((_, reject) => {
    refuse = reject;
  });
  const engine = {
    createContainer: () => making,
    inspectContainer: async () => ({ id: "old", labels: listed[0]?.labels, state: { status: "running" } }),
    listContainers: async () => listed,
  };
  const context = {
    engine,
    settings: { sandboxImage: "pause", network: { plugin: "docker" } },
    facts: { info: async () => ({ runtimes: [], cgroupDriver: "cgroupfs" }) },
    stamp: () => 2n,
    lowestOomScore: 0,
  } as unknown as ShimContext;
  const sandboxes = new DockerSandboxes(context, {} as DockerSandboxPorts);
  const metadata = { name: "p", namespace: "n", uid: "u", attempt: 0 };
  const request = { config: PodSandboxConfig.fromPartial({ metadata }), runtimeHandler: "" };
  const shown = async () => (await sandboxes.listed(never)).map(({ id }) => id);
  return { refuse: (reason: Error) => refuse(reason), shown, run: () => sandboxes.run(request, never) };
}

test("a sandbox that is being made is not shown; one that holds its name is", async () => {
  const { refuse, shown, run } = slowDocker([sandbox("old", 1n), sandbox("new", 2n)]);
  const refused = assert.rejects(run(), /is reserved for "old"/);
  assert.deepEqual(await shown(), ["old"]);
  refuse(new EngineError(409, "Conflict. The container name is already in use"));
  await refused;
  assert.deepEqual(await shown(), ["old", "new"]);
});
