// CPUs that one container has alone, on a real runtime: what counts is what a process inside finds, and what the kernel
// has when the agent was killed, when somebody else changes it, and when the pod is gone.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CriClient, LinuxContainerResources } from "../../src/connections/cri/index.ts";
import { CpuSet, systemClock } from "../../src/ground/base/index.ts";
import { eventually, isReady, TestAgent } from "../support/agent.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";

let containerd: TestContainerd;
let agent: TestAgent;
let cri: CriClient;
before(async () => {
  containerd = await startContainerd();
  agent = await TestAgent.start(containerd, {
    cpuManagerPolicy: "static",
    cpuManagerReconcilePeriod: "1s",
    kubeReserved: { cpu: "500m" },
  });
  const settings = { runtimeEndpoint: containerd.endpoint, imageEndpoint: "", requestTimeoutMs: 60_000 };
  cri = new CriClient(settings, { clock: systemClock });
});
after(async () => {
  cri.close();
  await agent[Symbol.asyncDispose]();
  await containerd[Symbol.asyncDispose]();
});

async function idOf(name: string): Promise<string> {
  const pod = await agent.until(name, "ready", isReady);
  return (pod.status?.containerStatuses?.[0]?.containerID ?? "").replace("containerd://", "");
}

/** Where a process that is started inside the container now may run. */
async function cpusInside(id: string): Promise<string> {
  const cmd = ["grep", "Cpus_allowed_list", "/proc/self/status"];
  const { stdout } = await cri.runtime.execSync({ containerId: id, cmd, timeout: 30n });
  return Buffer.from(stdout).toString().replace("Cpus_allowed_list:", "").trim();
}

const until = (id: string, cpus: string, what: string): Promise<boolean> =>
  eventually(async () => (await cpusInside(id)) === cpus, what, 30_000);

const container = (requests: Readonly<Record<string, string>> | undefined) => ({
  name: "main",
  image: containerd.images.busybox,
  command: ["sh", "-c", 'trap "exit 0" TERM; sleep 1d & wait'],
  ...(requests === undefined ? {} : { resources: { requests, limits: requests } }),
});

test("one container alone on its CPU, the others beside it, whatever happens", async () => {
  await agent.apply("shares", { containers: [container(undefined)] });
  const shares = await idOf("shares");
  const all = CpuSet.parse(await readFile("/sys/devices/system/cpu/online", "utf8"));
  assert.equal(await cpusInside(shares), String(all));

  await agent.apply("alone", { containers: [container({ cpu: "1", memory: "32Mi" })] });
  const alone = await idOf("alone");
  const own = await cpusInside(alone);
  const left = String(all.without(CpuSet.parse(own)));
  assert.equal(CpuSet.parse(own).size, 1);
  await until(shares, left, "the other was moved off");
  const file = join(agent.rootDir, "cpu_manager_state");
  const kept = await readFile(file, "utf8");
  const { checksum: _, entries, ...rest } = JSON.parse(kept);
  assert.deepEqual(rest, { policyName: "static", defaultCpuSet: left });
  assert.deepEqual(Object.values(entries), [{ main: own }]);

  await agent.kill9();
  await agent.launch();
  assert.deepEqual([await idOf("alone"), await idOf("shares")], [alone, shares], "neither was started again");
  assert.deepEqual([await cpusInside(alone), await cpusInside(shares)], [own, left]);
  assert.equal(await readFile(file, "utf8"), kept);

  // Somebody else moves it, as an administrator with another tool would.
  const linux = LinuxContainerResources.fromPartial({ cpusetCpus: String(all) });
  await cri.runtime.updateContainerResources({ containerId: shares, linux, windows: undefined, annotations: {} });
  await until(shares, left, "it was moved back");

  await agent.remove("alone");
  await agent.untilGone("alone");
  await until(shares, String(all), "all CPUs are for all again");
  assert.doesNotMatch(await readFile(file, "utf8"), /entries/);
});
