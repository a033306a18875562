import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { TestDevicePlugin } from "../../../test/support/device-plugin.ts";
import { until } from "../../../test/support/until.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import type { ListedDevice } from "./device-plugin-client.ts";
import { DevicePlugins } from "./device-plugins.ts";
import { removeOldSockets, serveDeviceRegistration } from "./device-registration.ts";

const gpu = "vendor.com/gpu";
let directory: string;
let scope: TaskScope;
let plugins: DevicePlugins;
let server: AsyncDisposable;
let lists: Map<string, readonly ListedDevice[]>;
let lost: string[];
let listCount: number;
const made: TestDevicePlugin[] = [];
const registrations: string[] = [];

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-devices-"));
  scope = new TaskScope();
  [lists, lost, listCount] = [new Map(), [], 0];
  plugins = new DevicePlugins({ scope, clock: systemClock, log: silentLogger });
  plugins.listed.on((resource, devices) => {
    lists.set(resource, devices);
    listCount++;
  });
  plugins.lost.on((resource) => lost.push(resource));
  const metrics = { onRegister: (resource: string) => void registrations.push(resource) };
  server = await serveDeviceRegistration(directory, plugins, metrics, scope.signal);
});
afterEach(async () => {
  for (const plugin of made.splice(0)) await plugin.stop();
  await scope.stop();
  await server[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function plugin(name: string, resource = gpu): Promise<TestDevicePlugin> {
  const started = new TestDevicePlugin(directory, name, resource);
  made.push(started);
  await started.start();
  return started;
}

const idsOf = (resource: string) => lists.get(resource)?.map(({ id }) => id);

test("a plugin registers, lists, is asked, and leaves", async () => {
  const one = await plugin("one.sock");
  await one.obey({ devices: ["a@1", "!b"], prefers: ["b"], preStart: true });
  await one.register();
  await until("it has listed", () => lists.has(gpu));
  assert.deepEqual(lists.get(gpu), [
    { id: "a", isHealthy: true, numaNodes: [1] },
    { id: "b", isHealthy: false, numaNodes: [] },
  ]);
  const found = plugins.of(gpu);
  assert.deepEqual(found?.options, { preStartRequired: true, givesPreferences: true });
  const query = { available: ["a", "b"], mustInclude: [], count: 1 };
  assert.deepEqual(await found?.client.preferred(query, scope.signal), ["b"]);
  assert.ok((await found?.client.allocate(["a"], scope.signal))?.length);
  await found?.client.preStart(["a"], scope.signal);
  await one.obey({ devices: ["a"] });
  await until("it has listed again", () => lists.get(gpu)?.length === 1);
  await one.stop();
  await until("it has left", () => lost.length === 1);
  assert.equal(plugins.of(gpu), undefined);
});

describe("a plugin that can't be used is told why", () => {
  for (const [what, version, resource, expected] of [
    [
      "an old version",
      "v1alpha",
      gpu,
      /requested API version "v1alpha" is not supported by kubelet. Supported version is \["v1beta1"\]/,
    ],
    ["a name without a vendor", "v1beta1", "gpu", /the ResourceName "gpu" is invalid/],
    ["a name of Kubernetes' own", "v1beta1", "kubernetes.io/gpu", /is invalid/],
  ] as const) {
    test(what, async () => {
      await assert.rejects((await plugin("one.sock")).register(version, resource), expected);
    });
  }
});

test("of two plugins for one resource the newer holds, and the end of the older means nothing", async () => {
  const [older, newer] = [await plugin("older.sock"), await plugin("newer.sock")];
  await older.obey({ devices: ["a"], register: true });
  await until("the older has listed", () => idsOf(gpu)?.[0] === "a");
  await newer.obey({ devices: ["b"], register: true });
  await until("the newer has listed", () => idsOf(gpu)?.[0] === "b");
  await older.obey({ devices: ["a", "a2"] });
  await older.stop();
  await newer.obey({ devices: ["b", "c"] });
  await until("the newer is heard", () => lists.get(gpu)?.length === 2);
  assert.deepEqual(idsOf(gpu), ["b", "c"]);
  assert.deepEqual(lost, []);
});

describe("a plugin that means no good", () => {
  test("answers rubbish: its calls fail, and its list ends", async () => {
    const one = await plugin("one.sock");
    await one.obey({ behave: "rubbish", devices: ["a"], register: true });
    await until("it is given up", () => lost.length === 1);
    await one.obey({ behave: "well", register: true });
    await until("it is back", () => lists.has(gpu));
    await one.obey({ behave: "rubbish" });
    await assert.rejects(plugins.of(gpu)?.client.allocate(["a"], scope.signal) ?? Promise.resolve(), /rpc error/);
  });

  test("answers with more than fits: the call fails", async () => {
    const one = await plugin("one.sock");
    await one.obey({ devices: ["a"], register: true });
    await until("it has listed", () => lists.has(gpu));
    await one.obey({ behave: "endlessly" });
    const call = plugins.of(gpu)?.client.allocate(["a"], scope.signal) ?? Promise.resolve();
    await assert.rejects(call, /ResourceExhausted/);
  });

  test("lists more devices than anybody has: it is given up", async () => {
    const one = await plugin("one.sock");
    await one.obey({ devices: Array.from({ length: 100_001 }, (_, index) => `${index}`), register: true });
    await until("it is given up", () => lost.length === 1);
    assert.equal(lists.size, 0);
  });

  test("lists without end: others are heard, and it takes a small part of the time", async () => {
    const [one, other] = [await plugin("one.sock"), await plugin("other.sock", "vendor.com/nic")];
    const many = Array.from({ length: 5_000 }, (_, index) => `device-${index}`);
    await one.obey({ behave: "endlessly", devices: many, register: true });
    await until("it has been heard", () => listCount > 10);
    await other.obey({ devices: ["n"], register: true });
    await until("the other is heard", () => lists.has("vendor.com/nic"));
    const [before, began] = [listCount, performance.now()];
    // More than two: what came just before, or of the other one, may be counted with them.
    await until("it has been heard again", () => listCount > before + 5);
    const perSecond = ((listCount - before) * 1000) / (performance.now() - began);
    assert.ok(perSecond < 5, `${perSecond} lists per second`);
  });

  test("says a thousand times in a second that a device is broken, or whole: what it says last is heard soon", async () => {
    const one = await plugin("one.sock");
    await one.obey({ devices: ["a"], register: true });
    await until("it has listed", () => lists.has(gpu));
    const [before, began] = [listCount, performance.now()];
    for (let flap = 0; flap < 1_000; flap++) {
      await one.obey({ devices: [flap % 2 === 0 ? "!a" : "a"] });
      if (flap % 10 === 0) await systemClock.sleep(5, scope.signal);
    }
    await one.obey({ devices: ["a", "last"] });
    await until("the last is heard", () => idsOf(gpu)?.includes("last") === true);
    const seconds = (performance.now() - began) / 1_000;
    assert.ok(listCount - before <= 10 + 2 * seconds + 2, `${listCount - before} were acted on in ${seconds} s`);
  });

  test("registers in a loop: it is refused, and others are not", async () => {
    const [one, other] = [await plugin("one.sock"), await plugin("other.sock", "vendor.com/nic")];
    const outcomes = await Promise.allSettled(Array.from({ length: 30 }, () => one.register()));
    const refused = outcomes.filter(({ status }) => status === "rejected");
    assert.ok(refused.length >= 15, `${refused.length} were refused`);
    await other.obey({ devices: ["n"], register: true });
    await until("the other is heard", () => lists.has("vendor.com/nic"));
  });
});

test("sockets of an earlier run go, other files stay", async () => {
  const elsewhere = await mkdtemp(join(tmpdir(), "nodelet-devices-"));
  const old = new TestDevicePlugin(elsewhere, "old.sock", gpu);
  try {
    assert.equal(await removeOldSockets(elsewhere), false);
    await old.start();
    await writeFile(join(elsewhere, "kubelet_internal_checkpoint"), "{}");
    assert.equal(await removeOldSockets(elsewhere), true);
    assert.equal(await removeOldSockets(elsewhere), true);
    await assert.rejects(rm(join(elsewhere, "old.sock")), { code: "ENOENT" });
  } finally {
    await old.stop();
    await rm(elsewhere, { recursive: true });
  }
});
