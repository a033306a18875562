// What the node is, is looked up when it is needed: networks come late and change.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { hostDnsReader, readResolvConf } from "../pod/runtime/index.ts";

test("pods wait for a resolv.conf that is not there yet, and each gets the one of its time", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-resolv-"));
  const path = join(directory, "resolv.conf");
  await using engine = await TestEngine.start({ readHostDns: hostDnsReader(() => readResolvConf(path)) });
  const servers = (name: string): readonly string[] | undefined =>
    engine.runtime.sandboxes().find(({ config }) => config.metadata?.name === name)?.config.dnsConfig?.servers;
  await engine.want(enginePod("first", { dnsPolicy: "Default" }));
  await engine.advance(5_000);
  assert.deepEqual(engine.running(), []);
  assert.match(engine.events.join("\n"), /first FailedCreatePodSandBox: .*resolver settings.*ENOENT/);
  await writeFile(path, "nameserver 192.0.2.1\n");
  await engine.until("it runs", () => engine.running().length === 1);
  await writeFile(path, "nameserver 192.0.2.2\n");
  await engine.want(enginePod("second", { dnsPolicy: "Default" }));
  await engine.until("the second runs", () => engine.running().length === 2);
  assert.deepEqual([servers("first"), servers("second")], [["192.0.2.1"], ["192.0.2.2"]]);
  await rm(directory, { recursive: true });
});

test("addresses that come late or change reach the status of pods on the host's network", async () => {
  let ips: readonly string[] = [];
  await using engine = await TestEngine.start({ hostIPs: () => ips });
  await engine.want(enginePod("proxy", { hostNetwork: true }));
  await engine.until("it runs", () => engine.phase("proxy") === "Running");
  assert.deepEqual([engine.status("proxy").hostIP, engine.status("proxy").podIP], [undefined, undefined]);
  for (const ip of ["192.0.2.1", "192.0.2.2"]) {
    ips = [ip];
    engine.engine.workers.wakeAll();
    await engine.advance(1_000);
    assert.deepEqual([engine.status("proxy").hostIP, engine.status("proxy").podIP], [ip, ip]);
  }
});

test("a container that wants the node's address waits until there is one", async () => {
  let ips: readonly string[] = [];
  await using engine = await TestEngine.start({ hostIPs: () => ips, nodeIps: () => ips });
  const env = [{ name: "HOST", valueFrom: { fieldRef: { fieldPath: "status.hostIP" } } }];
  await engine.want(enginePod("asking", { containers: [{ name: "main", image: "busybox:1", env }] }));
  await engine.advance(2_000);
  assert.deepEqual(engine.running(), []);
  assert.equal(engine.container("asking", "main").state?.waiting?.reason, "CreateContainerConfigError");
  ips = ["192.0.2.1"];
  await engine.until("it runs", () => engine.running().length === 1);
  const [made] = engine.runtime.containers();
  assert.ok(made?.config.envs.some(({ key, value }) => key === "HOST" && value.toString() === "192.0.2.1"));
});
