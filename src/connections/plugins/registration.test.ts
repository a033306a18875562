import assert from "node:assert/strict";
import { once } from "node:events";
import { link, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type CsiDriverOptions, DriverFailure, TestCsiDriver } from "../../../test/support/csi-driver.ts";
import { until } from "../../../test/support/until.ts";

import { type Clock, type Logger, silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import { CsiDrivers, type CsiNodeInfo, type CsiNodeRecords, DriverMissingError } from "./csi-drivers.ts";
import { PluginRegistration } from "./registration.ts";

class Node implements AsyncDisposable {
  readonly root: string;
  readonly scope = new TaskScope();
  readonly announced: CsiNodeInfo[] = [];
  readonly withdrawn: string[] = [];
  readonly drivers: CsiDrivers;
  readonly registered: string[] = [];
  recordsFailure: Error | undefined;
  readonly #started: TestCsiDriver[] = [];

  private constructor(root: string) {
    this.root = root;
    const records: CsiNodeRecords = {
      announce: async (info) => {
        if (this.recordsFailure !== undefined) throw this.recordsFailure;
        this.announced.push(info);
      },
      withdraw: async (driver) => void this.withdrawn.push(driver),
    };
    const onRegistered = (name: string): void => void this.registered.push(name);
    this.drivers = new CsiDrivers({ clock: systemClock, log: silentLogger, records, onRegistered });
  }

  static async create(): Promise<Node> {
    const root = await mkdtemp(join(tmpdir(), "nodelet-reg-"));
    await mkdir(join(root, "reg"));
    return new Node(root);
  }

  begin(more: { readonly log?: Logger; readonly clock?: Clock } = {}): void {
    const ports = {
      directory: join(this.root, "reg"),
      handlers: new Map([["CSIPlugin", this.drivers]]),
      clock: systemClock,
      log: silentLogger,
      ...more,
    };
    this.scope.spawn("plugins", (signal) => new PluginRegistration(ports).run(signal));
  }

  driver(options: CsiDriverOptions = {}, folder = ""): TestCsiDriver {
    const name = `d${this.#started.length}`;
    const driver = new TestCsiDriver(join(this.root, name), join(this.root, "reg", folder), options);
    this.#started.push(driver);
    return driver;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const driver of this.#started) await driver.stop();
    await this.scope.stop();
    await rm(this.root, { recursive: true, force: true });
  }
}

test("a driver that is there before us, and one that comes later in a directory of its own", async () => {
  await using node = await Node.create();
  await node.driver({ name: "early", maxVolumes: 7n, topology: { zone: "a" } }).start();
  node.begin();
  await until("the early one is registered", () => node.drivers.names().includes("early"));
  const late = node.driver({ name: "late" }, "own/directory");
  await late.start();
  await until("the late one is registered", () => node.drivers.names().includes("late"));
  assert.deepEqual(node.announced[0], { driver: "early", nodeId: "node-1", topology: { zone: "a" }, maxVolumes: 7n });
  await until("it was told", () => late.statuses.length > 0);
  assert.deepEqual(late.statuses, [{ pluginRegistered: true, error: "" }]);
  assert.deepEqual(node.registered, ["early", "late"]);
  assert.ok((await node.drivers.client("late").capabilities(new AbortController().signal)).stage);
});

test("a driver that leaves is forgotten, and one that comes back under the same name is asked anew", async () => {
  await using node = await Node.create();
  node.begin();
  const driver = node.driver();
  await driver.start();
  await until("it is registered", () => node.drivers.names().length === 1);
  await driver.stop();
  await until("it is gone", () => node.drivers.names().length === 0);
  assert.deepEqual(node.withdrawn, [driver.name]);
  assert.throws(
    () => node.drivers.client(driver.name),
    (error) => {
      assert.ok(error instanceof DriverMissingError);
      assert.equal(error.message, "driver name csi.example.com not found in the list of registered CSI drivers");
      return true;
    },
  );
  await driver.start();
  await until("it is back", () => node.drivers.names().length === 1);
  await driver.stop();
  await driver.start();
  await until("it was registered once more", () => node.registered.length === 3);
});

for (const { name, options, problem } of [
  { name: "no id for the node", options: { nodeId: "" }, problem: /gave no id for this node/ },
  {
    name: "only version 0",
    options: { versions: ["0.3.0"] },
    problem: /supports versions \[0\.3\.0\], but a version 1\.x is needed/,
  },
  { name: "only version 2", options: { versions: ["2.0.0"] }, problem: /a version 1\.x is needed/ },
  { name: "no version at all", options: { versions: [] }, problem: /a version 1\.x is needed/ },
] as const) {
  test(`refused and told why: ${name}`, async () => {
    await using node = await Node.create();
    node.begin();
    const driver = node.driver(options);
    await driver.start();
    await until("it was told", () => driver.statuses.length > 0);
    assert.equal(driver.statuses[0]?.pluginRegistered, false);
    assert.match(driver.statuses[0]?.error ?? "", problem);
    assert.deepEqual(node.drivers.names(), []);
  });
}

test("tried again while its socket is there: a driver that is not ready, and records that can't be written", async () => {
  await using node = await Node.create();
  node.begin();
  const driver = node.driver();
  driver.failures.set("NodeGetInfo", { error: new DriverFailure(14, "warming up"), when: "before" });
  await driver.start();
  await until("it was told", () => driver.statuses.length > 0);
  assert.match(driver.statuses[0]?.error ?? "", /rpc error: code = Unavailable desc = warming up/);
  driver.failures.clear();
  node.recordsFailure = new Error("conflict");
  await until("it was told again", () => driver.statuses.length > 1);
  assert.match(driver.statuses[1]?.error ?? "", /error updating CSINode object with CSI driver node info: conflict/);
  node.recordsFailure = undefined;
  await until("it is registered", () => node.drivers.names().length === 1);
});

test("a socket that nobody serves is tried again and again, one try at a time, and said once", async () => {
  await using node = await Node.create();
  const said = { errors: 0, tries: 0 };
  const log: Logger = { ...silentLogger, error: () => void said.errors++, debug: () => void said.tries++ };
  const waiting = new Set<object>();
  let mostWaiting = 0;
  const clock: Clock = {
    ...systemClock,
    // Tries come a hundred times as fast; whoever looks after the directory does so as ever.
    after(ms, action) {
      if (ms >= 60_000) return systemClock.after(ms, action);
      const timer = systemClock.after(ms / 100, () => {
        waiting.delete(timer);
        action();
      });
      waiting.add(timer);
      mostWaiting = Math.max(mostWaiting, waiting.size);
      return { cancel: () => [timer.cancel(), waiting.delete(timer)] };
    },
  };
  node.begin({ log, clock });
  const socket = join(node.root, "reg", "dead.sock");
  for (let life = 1; life <= 3; life++) {
    const tries = said.tries;
    await leaveDeadSocket(join(node.root, "living.sock"), socket);
    await until(`it is tried again in life ${life}`, () => said.tries >= tries + 3);
  }
  assert.equal(said.errors, 1);
  assert.equal(mostWaiting, 1);
  await rm(socket);
  await until("nothing is left of it", () => waiting.size === 0);
});

/**
 * The server closes its own path; a second name for it stays, and nobody answers there. It comes into the directory only
 * then: whoever had reached the living server would keep it from closing.
 */
async function leaveDeadSocket(path: string, dead: string): Promise<void> {
  const server = createServer().listen(path);
  await once(server, "listening");
  await link(path, `${path}.dead`);
  server.close();
  await once(server, "close");
  await rename(`${path}.dead`, dead);
}

test("two of the same name: the higher version wins, whichever comes first", async () => {
  await using node = await Node.create();
  node.begin();
  const [old, young] = [
    node.driver({ versions: ["1.1.0"] }, "old"),
    node.driver({ versions: ["1.0.0", "1.2.0", "0.9"] }, "new"),
  ];
  await old.start();
  await until("the old one is registered", () => node.registered.length === 1);
  await young.start();
  await until("the new one takes over", () => node.registered.length === 2);
  await old.stop();
  await old.start();
  await until("the old one was told", () => old.statuses.some(({ pluginRegistered }) => !pluginRegistered));
  assert.match(
    old.statuses.at(-1)?.error ?? "",
    /Another driver with the same name is already registered with a higher supported version/,
  );
  assert.deepEqual(node.drivers.names(), ["csi.example.com"]);
});

test("what is no socket, or is hidden, is left alone", async () => {
  await using node = await Node.create();
  const driver = node.driver();
  await driver.start();
  await rename(driver.registrationSocket, join(node.root, "reg/.hidden.sock"));
  await writeFile(join(node.root, "reg/file"), "");
  node.begin();
  const visible = node.driver({ name: "visible" });
  await visible.start();
  await until("the visible one is registered", () => node.drivers.names().length > 0);
  assert.deepEqual(node.drivers.names(), ["visible"]);
});

test("a registry that is not there yet is looked for", async () => {
  await using node = await Node.create();
  await rm(join(node.root, "reg"), { recursive: true });
  node.begin();
  const driver = node.driver();
  await driver.start();
  await until("it is registered", () => node.drivers.names().length === 1);
});
