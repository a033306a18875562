// What `nodelet apply --dry-run` says is what then happens: the agent is asked, then really given the pod.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { seededRandom } from "../../test/support/seeded-random.ts";
import { WholeAgent, type WholeAgentOptions } from "../../test/support/whole-agent.ts";
import type { Pod, PodStatus } from "../ground/model/index.ts";

async function startWithManifests(options: WholeAgentOptions = {}): Promise<WholeAgent> {
  const whole = await WholeAgent.build(options);
  mkdirSync(join(whole.directory, "manifests"), { recursive: true });
  whole.run();
  await whole.until("the runtime has answered", () => whole.agent.parts.sight.arePodsKnown());
  return whole;
}

function fileOf(whole: WholeAgent, name: string): string {
  return join(whole.directory, "manifests", `${name}.json`);
}

/** As the agent itself shows it. */
function shown(whole: WholeAgent, name: string): Pod | undefined {
  return whole.agent.parts.engine.views.pods().find(({ metadata }) => metadata?.name === `${name}-node-1`);
}

const refusals = /^Pod was rejected: /;

/** What has become of the pod: refused, waiting for a decision, or at work. */
async function happened(whole: WholeAgent, name: string): Promise<{ type: string; reason?: string; message?: string }> {
  const status = (): PodStatus | undefined => shown(whole, name)?.status;
  const uid = (): string => shown(whole, name)?.metadata?.uid ?? "";
  const blocker = () => whole.agent.parts.base.ledger.read(uid() as never)?.blocker;
  await whole.until(`${name} is decided about`, () => {
    if (shown(whole, name) === undefined) return false;
    return (
      status()?.phase === "Failed" ||
      blocker()?.reason === "NotDecidedYet" ||
      whole.running().some((each) => each.startsWith(`${name}-node-1/`))
    );
  });
  const { phase, reason, message } = status() ?? {};
  if (phase === "Failed")
    return { type: "rejected", reason: reason ?? "", message: message?.replace(refusals, "") ?? "" };
  const waits = blocker();
  if (waits?.reason === "NotDecidedYet") return { type: "waits", message: waits.message };
  return { type: "admitted" };
}

/** A pod that may be small or large, with ports, sysctls and selectors that not every node takes. */
function somePod(random: () => number, name: string): Pod {
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  const amounts = () => ({ cpu: pick(["100m", "1", "2", "5"]), memory: pick(["64Mi", "1Gi", "5Gi"]) });
  const resources = () => {
    const both = amounts();
    return pick([{}, { requests: both }, { requests: both, limits: both }, { limits: amounts() }]);
  };
  const container = (label: string) => ({
    name: label,
    image: "busybox:1",
    resources: resources(),
    ...(random() < 0.3 && { ports: [{ containerPort: 80, hostPort: pick([8080, 8081]) + (label === "c0" ? 0 : 10) }] }),
  });
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name },
    spec: {
      containers: Array.from({ length: 1 + Math.floor(random() * 2) }, (_, index) => container(`c${index}`)),
      ...(random() < 0.2 && { priority: 2_000_000_000 }),
      ...pick<object>([
        {},
        {},
        {},
        { nodeSelector: { disk: "none" } },
        { os: { name: "windows" } },
        { securityContext: { sysctls: [{ name: "net.core.somaxconn", value: "1" }] } },
      ]),
    },
  } as Pod;
}

type Planned = NonNullable<Awaited<ReturnType<WholeAgent["planOf"]>>["pod"]>;

/** The pod's cgroup and its containers have what was foreseen. */
async function assertResources(whole: WholeAgent, name: string, { uid, cgroup, containers }: Planned): Promise<void> {
  assert.ok(cgroup !== undefined);
  for (const [file, wanted] of Object.entries(cgroup.files)) {
    const written = (await whole.cgroups.read(`/cgroup${cgroup.path}/${file}`)).trim();
    assert.equal(written, wanted, `${name} ${file}`);
  }
  for (const { config, sandbox } of whole.runtime.containers()) {
    if (sandbox.config.metadata?.uid !== uid) continue;
    const planned = containers.find((container) => container.name === config.metadata?.name);
    const told = config.linux?.resources;
    assert.deepEqual(
      [planned?.cpuShares, planned?.cpuQuotaUs, planned?.memoryLimitBytes, planned?.oomScoreAdj],
      [told?.cpuShares, told?.cpuQuota, told?.memoryLimitInBytes, told?.oomScoreAdj].map(Number),
      `${name}/${planned?.name}`,
    );
    assert.equal(planned?.cpus, told?.cpusetCpus, name);
  }
}

for (const { how, options } of [
  { how: "in a cluster", options: {} },
  { how: "on a machine of its own", options: { standalone: true } },
  {
    how: "where containers have CPUs and memory of their own",
    options: { config: "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\ntopologyManagerPolicy: restricted\n" },
  },
]) {
  test(`${how}, what is foreseen of 30 pods is what happens to them`, async () => {
    await using whole = await startWithManifests(options);
    const random = seededRandom(7);
    const seen = new Map<string, number>();
    for (let index = 0; index < 30; index++) {
      const name = `p${index}`;
      const text = JSON.stringify(somePod(random, name));
      const plan = await whole.planOf(`${name}.json`, text);
      assert.equal((await whole.planOf(`${name}.json`, text)).pod?.verdict.type, plan.pod?.verdict.type, "asked again");
      const { pod } = plan;
      assert.ok(pod !== undefined, JSON.stringify(plan.problems));
      writeFileSync(fileOf(whole, name), text);
      const became = await happened(whole, name);
      const { verdict } = pod;
      const foreseen =
        verdict.type === "waits" ? { type: "waits", message: `waiting for ${verdict.waitsFor}` } : verdict;
      assert.deepEqual(became, verdict.type === "admitted" ? { type: "admitted" } : foreseen, name);
      seen.set(verdict.type, (seen.get(verdict.type) ?? 0) + 1);
      const real = shown(whole, name);
      assert.equal(real?.metadata?.uid, pod.uid, name);
      if (verdict.type !== "admitted") continue;
      assert.equal(real?.status?.qosClass, pod.qosClass, name);
      await assertResources(whole, name, pod);
      // Some go again, so that there is room for others to be taken.
      if (random() < 0.5) {
        rmSync(fileOf(whole, name));
        await whole.until(`${name} is gone`, () => shown(whole, name) === undefined);
      }
    }
    assert.ok((seen.get("admitted") ?? 0) >= 5, JSON.stringify([...seen]));
    assert.ok((seen.get("rejected") ?? 0) >= (options.standalone === true ? 1 : 5), JSON.stringify([...seen]));
  });
}

const plain = (name: string, spec: object = {}, metadata: object = {}): string =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...metadata },
    spec: { containers: [{ name: "main", image: "busybox:1" }], ...spec },
  });

test("a critical pod is told who would have to go for it, and nobody goes by asking", async () => {
  await using whole = await startWithManifests();
  const asking = (cpu: string, more: object = {}) => ({
    containers: [{ name: "main", image: "busybox:1", resources: { requests: { cpu } } }],
    ...more,
  });
  writeFileSync(fileOf(whole, "small"), plain("small", asking("9")));
  await happened(whole, "small");
  const { pod } = await whole.planOf("big.json", plain("big", asking("12", { priority: 2_000_001_000 })));
  assert.deepEqual(
    pod?.sums.find(({ resource }) => resource === "cpu"),
    {
      resource: "cpu",
      has: "16",
      promised: "9",
      asks: "12",
      isEnough: false,
    },
  );
  // A static pod gives way to none: the real admission says so, too.
  assert.equal(pod?.verdict.type, "rejected");
  whole.create("guest", { priority: 0, ...asking("6") } as never);
  await whole.until("the guest runs", () => whole.running().includes("guest/main"));
  const plan = await whole.planOf("big.json", plain("big", asking("5", { priority: 2_000_001_000 })));
  assert.deepEqual(plan.pod?.verdict, { type: "admitted", preempts: ["default/guest"], forWantOf: "cpu" });
  await whole.advance(60_000);
  assert.ok(whole.running().includes("guest/main"));
});

test("a file of the same name is replaced, one of another name is refused, the same one changes nothing", async () => {
  await using whole = await startWithManifests();
  const text = plain("web", {
    containers: [{ name: "main", image: "busybox:1", ports: [{ containerPort: 1, hostPort: 80 }] }],
  });
  writeFileSync(fileOf(whole, "web"), text);
  await happened(whole, "web");
  const same = await whole.planOf("web.json", text);
  assert.deepEqual([same.outcome, same.pod?.presence], ["unchanged", "the same"]);
  const newer = await whole.planOf("web.json", text.replace(`"hostPort":80`, `"hostPort":80,"name":"http"`));
  assert.deepEqual([newer.outcome, newer.pod?.presence, newer.pod?.hostPorts], ["admitted", "replaces", []]);
  assert.equal(newer.pod?.namesakes.length, 1);
  const copy = await whole.planOf("copy.json", text);
  assert.equal(copy.outcome, "invalid");
  assert.match(copy.problems[0]?.message ?? "", /the pod is already described by .*web\.json/);
  const other = await whole.planOf("other.json", text.replace(`"name":"web"`, `"name":"other"`));
  assert.equal(other.outcome, "refused");
  assert.deepEqual(other.pod?.hostPorts, [{ port: 80, protocol: "TCP", ip: "0.0.0.0", holder: "default/web-node-1" }]);
  assert.deepEqual(
    other.pod?.objections.map(({ handler, reason }) => [handler, reason]),
    [["host ports", "NodePorts"]],
  );
});

test("asking changes nothing: no pod, no file, no event, no pull, no CPU, no cgroup", async () => {
  await using whole = await startWithManifests({
    config:
      "cpuManagerPolicy: static\nreservedSystemCPUs: '0'\nmemoryManagerPolicy: Static\nreservedMemory:\n- numaNode: 0\n  limits: {memory: 100Mi}\nevictionHard: {memory.available: 100Mi}\n",
  });
  writeFileSync(fileOf(whole, "old"), plain("old"));
  await happened(whole, "old");
  const { parts } = whole.agent;
  const state = () => ({
    pods: parts.engine.views.pods(),
    wanted: [...parts.sight.wanted.pods.keys()],
    taken: [...parts.sight.table.keys()],
    cpus: parts.placed.placement.given?.cpus?.given.state,
    memory: parts.placed.placement.given?.memory?.state,
    devices: parts.devices.manager.state,
    volumes: parts.volumes.volumes.size,
    containers: whole.runtime.containers().length,
    images: whole.runtime.imageStore.names(),
    writes: whole.cgroups.writes,
    calls: whole.api.calls.length,
  });
  await whole.advance(0);
  const before = state();
  const both = { cpu: "2", memory: "1Gi" };
  const container = { name: "main", image: "absent:2", resources: { requests: both, limits: both } };
  for (const text of [
    plain("new", { containers: [container] }),
    plain("old", { hostPID: true }),
    "rubbish",
    plain("x y"),
  ]) {
    await whole.planOf("new.json", text);
    await whole.planOf("old.json", text);
  }
  assert.deepEqual(state(), before);
});
