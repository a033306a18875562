// The agent ends again and again, by kill -9, SIGTERM and a change of the binary, while the API and the runtime fail too:
// its pods must not notice. The long form is `npm run prove:restarts`.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import { ContainerState } from "../../src/connections/cri/index.ts";
import { resources } from "../../src/connections/kube/index.ts";
import { runtimeLabels } from "../../src/pod/runtime/index.ts";
import { eventually } from "../support/agent.ts";
import { type MeddleTools, proveRestarts } from "../support/restart-proof/prove.ts";
import { gate } from "../support/restart-proof/steady-pods.ts";
import { soon } from "../support/until.ts";

const seed = Number(process.env["NODELET_SEED"] ?? Date.now() % 1_000_000);

test(`the agent ends 8 times among 15 pods (NODELET_SEED=${seed})`, { timeout: 900_000 }, async (t) => {
  const { incidents, ...figures } = await proveRestarts({
    seed,
    pods: 15,
    endings: { "kill -9": 6, SIGTERM: 1, "another binary": 1 },
    report: (line) => t.diagnostic(line),
  });
  t.diagnostic(JSON.stringify(figures));
  assert.deepEqual(incidents, []);
});

const pod = (name: string, subresource?: string) => ({
  namespace: "default",
  name,
  ...(subresource && { subresource }),
});

/** One fault of each kind that the proof is there to see. */
async function meddle({ admin, cri, observed, containerd }: MeddleTools): Promise<void> {
  const say = (name: string, status: object) =>
    admin.patch(resources.pods, pod(name, "status"), { type: "strategic", body: { status } }, soon());
  const { containers } = await cri.runtime.listContainers({ filter: undefined });
  const victim = containers.find(
    ({ labels, state }) =>
      labels[runtimeLabels.podName] === "guaranteed-0" && state === ContainerState.CONTAINER_RUNNING,
  );
  await cri.runtime.stopContainer({ containerId: victim?.id ?? "", timeout: 0n });
  await say("gated-0", { conditions: [{ type: gate, status: "False" }] });
  await say("selected-0", { phase: "Failed", reason: "NodeAffinity", message: "planted" });
  await admin.delete(resources.pods, pod("daemon-0"), { gracePeriodSeconds: 0 }, soon());
  // The agent sets it right again, now and then before anybody has looked.
  const plantLimit = async (): Promise<boolean> => {
    for (const file of ["cpu/%/kubepods/burstable/cpu.shares", "%/kubepods/burstable/cpu.weight"]) {
      await writeFile(`/sys/fs/cgroup/${file.replace("%", containerd.cgroupRoot)}`, "77").catch(() => {});
    }
    await observed.cgroups.look();
    return observed.cgroups.changes.some((change) => change.endsWith("-> 77"));
  };
  await eventually(plantLimit, "the proof sees a changed limit", 60_000);
  for (const harm of ["restart", "flip", "rejection", "replacement"] as const) {
    await eventually(async () => observed.count(harm) > 0, `the proof sees a ${harm}`, 60_000);
  }
  await observed.runtime.look();
}

test("the proof sees a restart, a flip, a rejection, a replacement, a container that came and a changed limit", {
  timeout: 900_000,
}, async (t) => {
  const endings = { "kill -9": 0, SIGTERM: 0, "another binary": 0 };
  const report = (line: string): void => t.diagnostic(line);
  const { incidents, left } = await proveRestarts({ seed, pods: 7, endings, meddle, report });
  for (const expected of [
    /^restart of guaranteed-0: main's id: /,
    /^flip of gated-0: ready: True .* -> False /,
    /^rejection of selected-0: phase: Running -> Failed \(NodeAffinity: planted\)/,
    /^replacement of daemon-0: .* was deleted/,
    /^runtime: container .* of guaranteed-0 runs no more/,
    /^runtime: container .* of guaranteed-0 has come/,
    /^cgroup .*burstable\/cpu\.(shares|weight): \d+ -> 77/,
  ]) {
    assert.ok(
      incidents.some((line) => expected.test(line)),
      `${expected} in\n${incidents.join("\n")}`,
    );
  }
  assert.equal(left, 0);
});
