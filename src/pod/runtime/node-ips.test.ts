import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import type { Node, NodeAddress } from "../../ground/model/index.ts";
import { NodeIps } from "./node-ips.ts";

class World implements AsyncDisposable {
  readonly clock = new FakeClock();
  found: readonly string[] | Error = [];
  looks = 0;
  told = 0;
  readonly scope = new TaskScope();
  readonly ips = new NodeIps({
    clock: this.clock,
    log: silentLogger,
    find: async () => {
      this.looks++;
      if (this.found instanceof Error) throw this.found;
      return this.found;
    },
  });

  async start(): Promise<this> {
    this.ips.onChange(() => this.told++);
    await this.ips.start(this.scope);
    return this;
  }

  learn(from: string, ...addresses: readonly NodeAddress[]): void {
    const node: Node = { status: { addresses } };
    this.ips.learn({ node, from });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.scope.stop();
  }
}

test("a network that comes up late is noticed; until then there is no address, least of all 127.0.0.1", async () => {
  await using world = await new World().start();
  await world.clock.advance(5_000);
  assert.deepEqual(world.ips.current, []);
  world.found = new Error("no route");
  await world.clock.advance(5_000);
  world.found = ["192.0.2.1"];
  await world.clock.advance(1_000);
  assert.deepEqual([world.ips.current, world.told], [["192.0.2.1"], 1]);
});

test("a machine that moves is followed, once a minute", async () => {
  const world = new World();
  world.found = ["192.0.2.1"];
  await using _ = await world.start();
  const looks = world.looks;
  await world.clock.advance(600_000);
  assert.ok(world.looks - looks <= 10, `${world.looks - looks} looks in ten minutes`);
  world.found = ["192.0.2.2"];
  await world.clock.advance(60_000);
  assert.deepEqual(world.ips.current, ["192.0.2.2"]);
});

test("what the API server says of the Node counts, and nobody looks at the machine meanwhile", async () => {
  const world = new World();
  world.found = ["192.0.2.1"];
  await using _ = await world.start();
  world.learn("disk", { type: "InternalIP", address: "192.0.2.9" });
  assert.deepEqual(world.ips.current, ["192.0.2.1"], "a Node from disk may be older than the address");
  world.learn(
    "api",
    { type: "ExternalIP", address: "198.51.100.1" },
    { type: "InternalIP", address: "10.0.0.1" },
    { type: "InternalIP", address: "10.0.0.2" },
    { type: "InternalIP", address: "fd00::1" },
    { type: "Hostname", address: "n1" },
  );
  assert.deepEqual(world.ips.current, ["10.0.0.1", "fd00::1"]);
  const looks = world.looks;
  await world.clock.advance(600_000);
  assert.equal(world.looks, looks);
  world.learn("api", { type: "ExternalIP", address: "198.51.100.1" });
  assert.deepEqual(world.ips.current, ["198.51.100.1"]);
  world.learn("api", { type: "Hostname", address: "n1" });
  assert.deepEqual(world.ips.current, ["192.0.2.1"]);
});
