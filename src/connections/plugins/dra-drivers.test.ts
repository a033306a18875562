import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { TestDraDriver } from "../../../test/support/dra-driver.ts";
import { soon, until } from "../../../test/support/until.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import type { ReportedHealth } from "./dra-client.ts";
import { DraDrivers } from "./dra-drivers.ts";
import { PluginRegistration } from "./registration.ts";
import { PluginError } from "./rpc.ts";

const name = "gpu.example.com";
const claim = { namespace: "ns", name: "c", uid: "u" };

class DriverLab implements AsyncDisposable {
  readonly directory: string;
  readonly scope = new TaskScope();
  readonly drivers: DraDrivers;
  readonly presence: boolean[] = [];
  readonly health: ReportedHealth[][] = [];
  readonly #made: TestDraDriver[] = [];

  private constructor(directory: string, followsHealth: boolean) {
    this.directory = directory;
    this.drivers = new DraDrivers({ scope: this.scope, clock: systemClock, log: silentLogger, followsHealth });
    this.drivers.presence.on((_, isThere) => void this.presence.push(isThere));
    this.drivers.health.on((_, devices) => void this.health.push([...devices]));
  }

  static async start(followsHealth = false): Promise<DriverLab> {
    return new DriverLab(await mkdtemp(join(tmpdir(), "nodelet-dra-")), followsHealth);
  }

  async driver(socket = "driver.sock"): Promise<TestDraDriver> {
    const driver = new TestDraDriver(this.directory, join(this.directory, socket), name);
    await driver.start();
    this.#made.push(driver);
    return driver;
  }

  plugin(versions: readonly string[] = ["v1.DRAPlugin"], socket = "driver.sock", as = name) {
    return { type: "DRAPlugin", name: as, endpoint: join(this.directory, socket), versions };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
    for (const driver of this.#made) await driver.stop();
    await rm(this.directory, { recursive: true, force: true });
  }
}

test("the first version in the driver's order that we speak is the one that is called", async () => {
  await using lab = await DriverLab.start();
  const driver = await lab.driver();
  for (const [versions, called] of [
    [["v1beta1.DRAPlugin", "v1.DRAPlugin"], "v1beta1"],
    [["v9.DRAPlugin", "v1.DRAPlugin"], "v1"],
  ] as const) {
    await lab.drivers.register(lab.plugin(versions));
    const answers = await lab.drivers.of(name).prepare([claim], soon());
    const device = { requests: ["dev"], pool: "pool", device: "dev", cdiIds: ["example.com/dra=c"] };
    assert.deepEqual(answers.get("u"), { error: "", devices: [device] });
    assert.deepEqual([...(await lab.drivers.of(name).unprepare([claim], soon())).keys()], ["u"]);
    assert.deepEqual(driver.calls.splice(0), [`${called}:prepare:c`, `${called}:unprepare:c`]);
    await lab.drivers.deregister(lab.plugin(versions));
  }
  assert.throws(() => lab.drivers.of(name), { message: `DRA driver ${name} is not registered` });
});

test("who can't be used is told why", async () => {
  await using lab = await DriverLab.start();
  const at = `invalid supported gRPC versions of DRA driver plugin ${name} at endpoint ${lab.directory}/driver.sock`;
  const cases: readonly (readonly [ReturnType<DriverLab["plugin"]>, string | RegExp])[] = [
    [lab.plugin([]), `${at}: empty list of supported gRPC services (aka supported versions)`],
    [
      lab.plugin(["x"]),
      `${at}: none of services supported by the plugin (["x"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])`,
    ],
    [lab.plugin(undefined, "driver.sock", "a,spec.nodeName=other"), /is no DNS name/],
    [lab.plugin(undefined, "driver.sock", ""), /is no DNS name/],
    [lab.plugin(undefined, "driver.sock", "x".repeat(64)), /is no DNS name/],
  ];
  for (const [plugin, message] of cases) await assert.rejects(lab.drivers.register(plugin), { message });
  await lab.drivers.register(lab.plugin());
  const twice = { message: `endpoint ${lab.directory}/driver.sock already registered for DRA driver plugin ${name}` };
  await assert.rejects(lab.drivers.register(lab.plugin()), twice);
  for (let more = 1; more < 10; more++) await lab.drivers.register(lab.plugin(undefined, `${more}.sock`));
  await assert.rejects(lab.drivers.register(lab.plugin(undefined, "11.sock")), /more than 10 plugins/);
});

test("of two plugins the newest that is there is asked, whatever becomes of the other", async () => {
  await using lab = await DriverLab.start();
  const [old, fresh] = [await lab.driver("old.sock"), await lab.driver("fresh.sock")];
  const prepare = () => lab.drivers.of(name).prepare([claim], soon());
  await lab.drivers.register(lab.plugin(undefined, "old.sock"));
  await until("it is connected", () => lab.presence.at(-1) === true);
  await lab.drivers.register(lab.plugin(undefined, "fresh.sock"));
  await until("the new one is asked", async () => {
    await prepare();
    return fresh.calls.length > 0;
  });
  await fresh.stop();
  old.calls.length = 0;
  await until("the old one is asked again", async () => {
    await prepare().catch(() => undefined);
    return old.calls.length > 0;
  });
  assert.equal(lab.presence.at(-1), true);
  await old.stop();
  await until("nobody is there", () => lab.presence.at(-1) === false);
  await assert.rejects(prepare(), (error: PluginError) => error instanceof PluginError && error.code === "Unavailable");
  await old.start();
  await until("it is back by itself", () => lab.presence.at(-1) === true);
  await prepare();
});

test("answers that are too large or make no sense cost one call", async () => {
  await using lab = await DriverLab.start();
  const driver = await lab.driver();
  await lab.drivers.register(lab.plugin());
  for (const [behave, code] of [
    ["rubbish", "Internal"],
    ["endlessly", "ResourceExhausted"],
    ["refuse", "Internal"],
  ] as const) {
    await driver.obey({ behave });
    const failed = await lab.drivers
      .of(name)
      .prepare([claim], soon())
      .catch((error: unknown) => error);
    assert.ok(failed instanceof PluginError);
    assert.equal(failed.code, code, behave);
  }
  await driver.obey({ behave: "hang" });
  const given = new AbortController();
  const hung = Array.from({ length: 20 }, () => lab.drivers.of(name).prepare([claim], given.signal));
  await until("it is asked", () => driver.calls.length >= 3 + 8);
  given.abort(new Error("given up"));
  const ended = await Promise.allSettled(hung);
  assert.ok(ended.every(({ status }) => status === "rejected"));
  assert.equal(driver.calls.length, 3 + 8, "eight at a time");
  await driver.obey({ behave: "well" });
  await lab.drivers.of(name).prepare([claim], soon());
});

test("it registers by its socket, and leaves with it", async () => {
  await using lab = await DriverLab.start();
  const driver = await lab.driver();
  const registration = new PluginRegistration({
    directory: lab.directory,
    handlers: new Map([["DRAPlugin", lab.drivers]]),
    clock: systemClock,
    log: silentLogger,
  });
  lab.scope.spawn("registration", (signal) => registration.run(signal));
  await driver.obey({ register: true });
  await until("it is registered", () => driver.told.includes("registered"));
  assert.ok(lab.drivers.isRegistered(name));
  await driver.deregister();
  await until("it has left", () => !lab.drivers.isRegistered(name));
});

test("how devices are is heard as long as somebody wants to know", async () => {
  await using lab = await DriverLab.start(true);
  const driver = await lab.driver();
  let lost = 0;
  lab.drivers.healthLost.on(() => void lost++);
  await lab.drivers.register(lab.plugin());
  const isSaid = (health: string) => () => lab.health.at(-1)?.[0]?.health === health;
  await until("it is well", isSaid("Healthy"));
  await driver.obey({ health: "UNHEALTHY" });
  await until("it is not", isSaid("Unhealthy"));
  await lab.drivers.deregister(lab.plugin());
  await until("nobody says anything", () => lost === 1);
});
