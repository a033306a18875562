import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { serveFakeRuntime } from "../../../test/support/served-runtime.ts";
import { until } from "../../../test/support/until.ts";
import { serveRuntime } from "../../beside/hollow/index.ts";
import { type Clock, silentLogger, systemClock } from "../../ground/base/index.ts";
import { HealthRegistry } from "../../node/server/index.ts";
import { CgroupDriver, CriClient, CriError, UnsupportedRuntimeError } from "./index.ts";
import { RuntimeLink } from "./runtime-link.ts";
import type { CriServices } from "./served.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-link-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const never = new AbortController().signal;

const version = async () => ({
  version: "0.1.0",
  runtimeName: "r",
  runtimeVersion: "1",
  runtimeApiVersion: "v1",
});
const images = { imageFsInfo: async () => ({ imageFilesystems: [], containerFilesystems: [] }) };

function link(name: string, changes: { cgroupDriver?: string; endpoint?: string; clock?: Clock } = {}) {
  const socket = join(directory, `${name}.sock`);
  const clock = changes.clock ?? systemClock;
  const health = new HealthRegistry(clock);
  const warnings: string[] = [];
  const log = { ...silentLogger, warn: (message: string) => warnings.push(message) };
  const settings = {
    containerRuntimeEndpoint: changes.endpoint ?? `unix://${socket}`,
    imageServiceEndpoint: "",
    cgroupDriver: changes.cgroupDriver ?? "cgroupfs",
  };
  const cri = new CriClient({ runtimeEndpoint: settings.containerRuntimeEndpoint, requestTimeoutMs: 5_000 }, { clock });
  const made = {
    link: new RuntimeLink(settings, { cri, clock, log, health }),
    cri,
    [Symbol.dispose]: () => cri.close(),
  };
  return { made, socket, health, warnings, state: () => health.read().find(({ name }) => name === "runtime")?.health };
}

test("health: not tried, waiting with the reason, connected, gone, and back", async () => {
  const { made, socket, state } = link("life");
  using _closed = made;
  assert.match(JSON.stringify(state()), /waiting.*not tried yet/);
  const connected = made.link.connect(never);
  await until("it is said", () => /waiting.*ENOENT/.test(JSON.stringify(state())));
  const runtime = await serveFakeRuntime(socket);
  assert.deepEqual((await connected).identity.name, "simulated");
  assert.equal(state()?.state, "ok");
  await runtime.kill();
  await assert.rejects(made.cri.runtime.version({ version: "0.1.0" }), CriError);
  assert.match(JSON.stringify(state()), /"waiting","reason":"the container runtime at unix:.* does not answer: /);
  await using _back = await serveFakeRuntime(socket);
  const answers = (): Promise<boolean> =>
    made.cri.runtime.version({ version: "0.1.0" }).then(
      () => true,
      () => false,
    );
  await until("the runtime answers again", answers);
  assert.equal(state()?.state, "ok");
});

test("health: how long ago the runtime answered does not follow the time of day", async () => {
  let setForwardMs = 0;
  const clock: Clock = { ...systemClock, now: () => systemClock.now() + setForwardMs };
  const { made, socket, health } = link("clock", { clock });
  using _closed = made;
  await using _runtime = await serveFakeRuntime(socket);
  await made.link.connect(never);
  for (const jump of [5 * 3_600_000, -5 * 3_600_000]) {
    setForwardMs = jump;
    const { provenMs = -1 } = health.read().find(({ name }) => name === "runtime") ?? {};
    assert.ok(provenMs >= 0 && provenMs < 600_000, `${provenMs} ms`);
  }
});

for (const { name, runtimeConfig, configured, expected } of [
  {
    name: "systemd",
    runtimeConfig: async () => ({ linux: { cgroupDriver: CgroupDriver.SYSTEMD } }),
    configured: "cgroupfs",
    expected: "systemd",
  },
  {
    name: "cgroupfs",
    runtimeConfig: async () => ({ linux: { cgroupDriver: CgroupDriver.CGROUPFS } }),
    configured: "systemd",
    expected: "cgroupfs",
  },
  { name: "no opinion", runtimeConfig: async () => ({ linux: undefined }), configured: "systemd", expected: "systemd" },
  { name: "no such call", runtimeConfig: undefined, configured: "systemd", expected: "systemd" },
] as const) {
  test(`cgroup driver: the runtime says ${name}, configured is ${configured}`, async () => {
    const { made, socket } = link(`driver-${name.replaceAll(" ", "-")}`, { cgroupDriver: configured });
    using _closed = made;
    const runtime = runtimeConfig === undefined ? { version } : { version, runtimeConfig };
    await using _served = await serveRuntime({ runtime, images } as CriServices, socket);
    assert.equal((await made.link.connect(never)).cgroupDriver, expected);
  });
}

test("a configured driver that nobody knows is refused when the runtime has no opinion", async () => {
  const { made, socket } = link("odd", { cgroupDriver: "magic" });
  using _closed = made;
  await using _served = await serveRuntime({ runtime: { version }, images }, socket);
  await assert.rejects(made.link.connect(never), /cgroupDriver "magic" is unknown; want "systemd" or "cgroupfs"/);
});

test("a runtime with another contract is a failure, not a wait", async () => {
  const { made, socket, state } = link("other");
  using _closed = made;
  const runtime = { version: async () => ({ ...(await version()), version: "9.9" }) };
  await using _served = await serveRuntime({ runtime, images }, socket);
  await assert.rejects(made.link.connect(never), UnsupportedRuntimeError);
  assert.equal(state()?.state, "failed");
});

test("a bare path as endpoint works, with a word about it", async () => {
  const { made, socket, warnings } = link("bare", { endpoint: join(directory, "bare.sock") });
  using _closed = made;
  await using _served = await serveFakeRuntime(socket);
  await made.link.connect(never);
  assert.match(warnings.join(), /is deprecated, please use the full URL "unix:\/\//);
});

test("the wait ends with its signal", async () => {
  const { made } = link("nobody");
  using _closed = made;
  const stop = new AbortController();
  const waiting = assert.rejects(made.link.connect(stop.signal), /enough/);
  stop.abort(new Error("enough"));
  await waiting;
});

test("the age of the last answer follows the clock", async () => {
  // Deadlines travel as wall-clock time, which the other end reads on its real clock.
  const clock = new FakeClock(systemClock.now());
  const health = new HealthRegistry(clock);
  const socket = join(directory, "aging.sock");
  const settings = { containerRuntimeEndpoint: `unix://${socket}`, imageServiceEndpoint: "", cgroupDriver: "cgroupfs" };
  const cri = new CriClient({ runtimeEndpoint: `unix://${socket}`, requestTimeoutMs: 60_000 }, { clock });
  const made = new RuntimeLink(settings, { cri, clock, log: silentLogger, health });
  await using _served = await serveFakeRuntime(socket);
  let connected = false;
  const connecting = made.connect(never).then(() => {
    connected = true;
  });
  while (!connected) await settle(1);
  await connecting;
  await clock.advance(30_000);
  assert.equal(health.read()[0]?.provenMs, 30_000);
  cri.close();
});
