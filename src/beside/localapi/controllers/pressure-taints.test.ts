import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ApiClient, accessOf, at } from "../../../../test/contract/api/client.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { type LocalApi, startLocalApi } from "../start.ts";

const nodes = "/api/v1/nodes";
const pods = "/api/v1/namespaces/default/pods";
const own = { key: "mine", value: "v", effect: "PreferNoSchedule" };
const memory = "node.kubernetes.io/memory-pressure";

describe("taints of nodes that run short", () => {
  let api: LocalApi;
  let clock: FakeClock;
  let admin: ApiClient;

  beforeEach(async () => {
    clock = new FakeClock();
    api = await startLocalApi({ clock });
    admin = new ApiClient(accessOf(await api.adminKubeconfig()));
    await admin.post(nodes, { metadata: { name: "n1" }, spec: { taints: [own] } });
  });
  afterEach(async () => {
    admin[Symbol.dispose]();
    await api.stop();
  });

  async function say(...pressed: readonly string[]): Promise<void> {
    const conditions = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"].map((type) => ({
      type,
      status: type === "Ready" || pressed.includes(type) ? "True" : "False",
    }));
    const found = await admin.get(`${nodes}/n1`);
    const { code } = await admin.put(`${nodes}/n1/status`, { ...(found.body as object), status: { conditions } });
    assert.equal(code, 200);
  }

  async function taints(): Promise<unknown> {
    const found = at((await admin.get(`${nodes}/n1`)).body, "spec", "taints") as readonly Record<string, string>[];
    return found.map(({ key, effect }) => `${key}:${effect}`);
  }

  async function create(name: string, more: object = {}): Promise<void> {
    const spec = { containers: [{ name: "main", image: "i" }], ...more };
    assert.equal((await admin.post(pods, { metadata: { name }, spec })).code, 201);
  }

  async function nodeOf(name: string): Promise<unknown> {
    return at((await admin.get(`${pods}/${name}`)).body, "spec", "nodeName");
  }

  test("come and go with its conditions, beside those of others", async () => {
    await say("MemoryPressure", "DiskPressure", "PIDPressure");
    const all = ["memory", "disk", "pid"].map((what) => `node.kubernetes.io/${what}-pressure:NoSchedule`);
    assert.deepEqual(await taints(), ["mine:PreferNoSchedule", ...all]);
    await say("DiskPressure");
    assert.deepEqual(await taints(), ["mine:PreferNoSchedule", "node.kubernetes.io/disk-pressure:NoSchedule"]);
    await say();
    assert.deepEqual(await taints(), ["mine:PreferNoSchedule"]);
  });

  test("a new pod waits until the node has enough, unless it tolerates that", async () => {
    await say("MemoryPressure");
    await create("waits");
    await create("tolerates", { tolerations: [{ key: memory, operator: "Exists", effect: "NoSchedule" }] });
    assert.equal(await nodeOf("tolerates"), "n1");
    assert.equal(await nodeOf("waits"), undefined);
    const waiting = at((await admin.get(`${pods}/waits`)).body, "status", "conditions", 0, "message");
    assert.equal(waiting, `0/1 nodes are available: 1 node(s) had untolerated taint {${memory}: }.`);
    await say();
    assert.equal(await nodeOf("waits"), "n1");
  });

  test("one that stands since yesterday keeps its time", async () => {
    await say("PIDPressure");
    const before = at((await admin.get(`${nodes}/n1`)).body, "spec", "taints", 1, "timeAdded");
    assert.ok(typeof before === "string");
    await clock.advance(86_400_000);
    await say("PIDPressure", "DiskPressure");
    assert.equal(at((await admin.get(`${nodes}/n1`)).body, "spec", "taints", 1, "timeAdded"), before);
  });
});
