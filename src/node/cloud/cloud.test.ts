import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { FakeClock, settleFiles } from "../../../test/support/fake-clock.ts";
import { until } from "../../../test/support/until.ts";
import { never, silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import type { CloudInstance } from "./instance.ts";
import { parseInstance } from "./instance.ts";
import { cloudProviderOf } from "./provider.ts";
import { CloudSync } from "./sync.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-cloud-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const address = { type: "InternalIP", address: "10.0.0.5" } as const;
const answer = { providerID: "acme://i-1", addresses: [address], zone: "a", region: "r", instanceType: "big" };

test("an answer is read as it is meant, and what is missing is empty", () => {
  assert.deepEqual(parseInstance(JSON.stringify(answer)), {
    providerId: "acme://i-1",
    addresses: [address],
    zone: "a",
    region: "r",
    instanceType: "big",
  });
  assert.equal(parseInstance("{}").providerId, "");
});

for (const [text, problem] of [
  ["", /no JSON/],
  ["[]", /want an object/],
  ['{"addresses":[{"type":"InternalIP","address":"not an ip"}]}', /addresses\[0\]/],
  ['{"addresses":[{"type":"InternalIP","address":"fe80::1%eth0"}]}', /addresses\[0\]/],
  ['{"addresses":[{"type":"Odd","address":"10.0.0.1"}]}', /addresses\[0\]/],
  ['{"addresses":[{"type":"Hostname","address":"a b"}]}', /addresses\[0\]/],
  [JSON.stringify({ addresses: Array(65).fill(address) }), /more than 64/],
  ['{"zone":"-"}', /zone: .* can't be a label/],
  [JSON.stringify({ region: "x".repeat(64) }), /region/],
  [JSON.stringify({ providerID: "x".repeat(2000) }), /providerID/],
  ['{"providerID":7}', /found a number/],
] as const) {
  test(`an answer that can't be used: ${text.slice(0, 60)}`, () => {
    assert.throws(() => parseInstance(text), problem);
  });
}

async function program(name: string, script: string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

test("a program is asked, within bounds", async () => {
  const good = await program("good", `echo '${JSON.stringify(answer)}'`);
  assert.equal((await cloudProviderOf(good, systemClock).instance(never)).zone, "a");
  const failing = await program("failing", "echo no such machine >&2; exit 3");
  await assert.rejects(cloudProviderOf(failing, systemClock).instance(never), /no such machine/);
  const endless = await program("endless", "yes");
  await assert.rejects(cloudProviderOf(endless, systemClock).instance(never), /more than 65536 bytes/);
});

test("an address is asked, within bounds; a redirect is not followed", async () => {
  await using served = await serve((request, response) => {
    if (request.url === "/good") response.end(JSON.stringify(answer));
    else if (request.url === "/long") response.end("x".repeat(100_000));
    else response.writeHead(302, { Location: "/good" }).end();
  });
  const ask = (path: string) => cloudProviderOf(`${served.url}${path}`, systemClock).instance(never);
  assert.equal((await ask("/good")).region, "r");
  await assert.rejects(ask("/long"), /more than 65536 bytes/);
  await assert.rejects(ask("/elsewhere"), /answered with 302/);
});

test("a cloud that never answers is given up after 10 s, with whatever its program has begun", async () => {
  const clock = new FakeClock(undefined, settleFiles);
  const pidFile = join(directory, "sleeper");
  const sleeping = await program("sleeping", `sleep 1000 & echo $! > ${pidFile}; wait`);
  const asked = assert.rejects(cloudProviderOf(sleeping, clock).instance(never), /no answer within 10 s/);
  const sleeper = async (): Promise<string> => (await readFile(pidFile, "utf8").catch(() => "")).trim();
  await until("it sleeps", async () => (await sleeper()) !== "");
  await clock.advance(10_000);
  await asked;
  const state = join("/proc", await sleeper(), "stat");
  // One that nobody has waited for yet is gone all the same.
  await until("nothing is left", async () => /^$|\) Z /.test(await readFile(state, "utf8").catch(() => "")));
});

test("the passwords of an address are not in its name", () => {
  const { name } = cloudProviderOf("https://me:hush@meta.example/v1?token=hush", systemClock);
  assert.equal(name, "https://meta.example/v1");
});

class FakeCloud {
  readonly name = "fake";
  now: CloudInstance | Error = new Error("out of reach");
  asked = 0;
  async instance(): Promise<CloudInstance> {
    this.asked++;
    if (this.now instanceof Error) throw this.now;
    return this.now;
  }
}

const known: CloudInstance = { ...answer, providerId: "acme://i-1" };

test("error, success, error, no addresses, success: what was said last counts, also over a restart", async () => {
  const cloud = new FakeCloud();
  const clock = new FakeClock(undefined, settleFiles);
  const path = join(directory, "cloud.json");
  const ports = { provider: cloud, path, everyMs: 60_000, clock, log: silentLogger };
  {
    await using scope = new TaskScope();
    const sync = new CloudSync(ports);
    scope.spawn("cloud", (signal) => sync.run(signal));
    const waiting = sync.firstAnswer(never);
    await settleFiles();
    const seen = (): CloudInstance | undefined => sync.instance;
    assert.equal(seen(), undefined);
    cloud.now = known;
    await pass(clock, 1_000);
    await waiting;
    assert.deepEqual(seen()?.addresses, [address]);
    cloud.now = new Error("an outage");
    await pass(clock, 60_000);
    await pass(clock, 60_000);
    assert.deepEqual(seen()?.addresses, [address]);
    cloud.now = { ...known, addresses: [], zone: "b" };
    await pass(clock, 60_000);
    assert.deepEqual(seen()?.addresses, [address], "no address is none better");
    assert.equal(seen()?.zone, "b");
  }
  cloud.now = new Error("still out");
  await using scope = new TaskScope();
  const sync = new CloudSync(ports);
  scope.spawn("cloud", (signal) => sync.run(signal));
  await sync.firstAnswer(never);
  assert.equal(sync.instance?.zone, "b");
});

test("what a cloud does not say for a moment stays known, and what could not be saved is saved later", async () => {
  const cloud = new FakeCloud();
  const clock = new FakeClock(undefined, settleFiles);
  const blocked = join(directory, "blocked");
  await writeFile(blocked, "a file where a directory is to be");
  const path = join(blocked, "cloud.json");
  await using scope = new TaskScope();
  const sync = new CloudSync({ provider: cloud, path, everyMs: 60_000, clock, log: silentLogger });
  scope.spawn("cloud", (signal) => sync.run(signal));
  await settleFiles();
  cloud.now = known;
  await pass(clock, 1_000);
  cloud.now = { providerId: "", addresses: [], zone: "", region: "", instanceType: "" };
  await rm(blocked);
  await pass(clock, 60_000);
  assert.deepEqual(sync.instance && { ...sync.instance }, parseInstance(JSON.stringify(answer)));
  assert.deepEqual(parseInstance(await readFile(path, "utf8")), sync.instance);
});

test("a node that is new waits for its cloud although its disk remembers one, which may be of another machine", async () => {
  const clock = new FakeClock(undefined, settleFiles);
  const path = join(directory, "copied.json");
  await writeFile(path, JSON.stringify({ ...answer, providerID: "acme://the-original" }));
  await using scope = new TaskScope();
  let answerNow = (_instance: CloudInstance): void => {};
  const provider = {
    name: "slow",
    instance: () =>
      new Promise<CloudInstance>((resolve) => {
        answerNow = resolve;
      }),
  };
  const sync = new CloudSync({ provider, path, everyMs: 60_000, clock, log: silentLogger });
  scope.spawn("cloud", (signal) => sync.run(signal));
  let isOver = false;
  const waiting = sync.firstAnswer(never).then(() => {
    isOver = true;
  });
  await settleFiles();
  assert.equal(sync.instance?.providerId, "acme://the-original");
  assert.equal(isOver, false);
  answerNow(known);
  await waiting;
  assert.equal(sync.instance?.providerId, "acme://i-1");
});

test("nothing of another machine is mixed into what the cloud says of this one", async () => {
  const clock = new FakeClock(undefined, settleFiles);
  const path = join(directory, "cloned.json");
  await writeFile(path, JSON.stringify({ ...answer, providerID: "acme://the-original" }));
  await using scope = new TaskScope();
  const cloud = new FakeCloud();
  const young: CloudInstance = { providerId: "acme://i-2", addresses: [], zone: "", region: "r", instanceType: "" };
  cloud.now = young;
  const sync = new CloudSync({ provider: cloud, path, everyMs: 60_000, clock, log: silentLogger });
  scope.spawn("cloud", (signal) => sync.run(signal));
  await sync.firstAnswer(never);
  assert.deepEqual(sync.instance, young);
  assert.deepEqual(parseInstance(await readFile(path, "utf8")), young);
});

test("a node waits for its cloud for 10 s and no longer", async () => {
  const clock = new FakeClock(undefined, settleFiles);
  const provider = { name: "silent", instance: () => new Promise<CloudInstance>(() => {}) };
  const path = join(directory, "none.json");
  const sync = new CloudSync({ provider, path, everyMs: 60_000, clock, log: silentLogger });
  let isOver = false;
  const waiting = sync.firstAnswer(never).then(() => {
    isOver = true;
  });
  await clock.advance(9_999);
  assert.equal(isOver, false);
  await clock.advance(1);
  await waiting;
});

async function pass(clock: FakeClock, ms: number): Promise<void> {
  await clock.advance(ms);
  await settleFiles();
}

async function serve(listener: RequestListener): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
