// The built agent beside the simulated runtime, and a device plugin as a process of its own: killed, back again, hung,
// talking rubbish. What containers are made with is read from what the runtime was asked for.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { LocalClient } from "../../src/beside/cli/local-client.ts";
import { FakeRuntime, serveRuntime } from "../../src/beside/hollow/index.ts";
import { CgroupDriver, type ContainerConfig } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { UnixChannel } from "../../src/ground/grpc/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { PodResourcesListerDefinition } from "../../src/node/server/pod-resources/gen/pod-resources.ts";
import { DaemonHome } from "../support/daemon.ts";
import { buildPluginProgram, PluginProcess } from "../support/device-plugin-process.ts";
import { soon, until } from "../support/until.ts";

const gpu = "vendor.com/gpu";

test("devices of a plugin reach containers whatever becomes of the plugin and the agent", async () => {
  await using home = await DaemonHome.create();
  await using _program = await buildPluginProgram();
  const made = new Map<string, ContainerConfig>();
  const traits = { name: "simulated", version: "1.2.3", cgroupDriver: CgroupDriver.CGROUPFS };
  const { runtime, images } = new FakeRuntime({ clock: systemClock, ...traits });
  const createContainer: typeof runtime.createContainer = (request, options) => {
    const pod = request.sandboxConfig?.metadata?.name.replace(/-node-1$/, "") ?? "";
    if (request.config !== undefined) made.set(pod, request.config);
    return runtime.createContainer(request, options);
  };
  await using _runtime = await serveRuntime({ runtime: { ...runtime, createContainer }, images }, home.runtimeSocket);
  const manifests = join(home.directory, "manifests");
  mkdirSync(manifests);
  home.configure({ staticPodPath: manifests, fileCheckFrequency: "1s" });
  const client = new LocalClient(join(home.rootDir, "nodelet.sock"));
  const run = (name: string, devices: number, init = false): void => {
    const resources = devices === 0 ? {} : { limits: { [gpu]: String(devices) } };
    const container = { name: "main", image: "image", imagePullPolicy: "IfNotPresent", resources };
    const initContainers = init ? [{ ...container, name: "init", command: ["sh", "-c", "exit 0"] }] : [];
    const spec = { initContainers, containers: [container] };
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
    writeFileSync(join(manifests, `${name}.json`), JSON.stringify(pod));
  };
  const podOf = async (name: string): Promise<Pod | undefined> =>
    (await client.pods(soon())).find(({ metadata }) => metadata?.name === `${name}-node-1`);
  const runs = (name: string): Promise<void> =>
    until(`${name} runs`, async () => (await podOf(name))?.status?.phase === "Running");
  const waitsFor = (name: string, what: RegExp): Promise<void> =>
    until(`${name} waits for ${what}`, async () => {
      // It may not have been read yet.
      const answer = await client.ledger(`${name}-node-1`, soon()).catch(() => undefined);
      return what.test(JSON.stringify(answer?.ledger));
    });
  const devicesOf = (name: string): string =>
    String(made.get(name)?.envs.find(({ key }) => key === "TEST_DEVICES")?.value ?? "none");
  const start = async () => {
    const daemon = home.start({ args: ["--hostname-override=node-1"] });
    await until(
      "the agent answers",
      async () => (await client.health(soon()).catch(() => undefined))?.healthy === true,
    );
    return daemon;
  };
  const begin = (): Promise<PluginProcess> => PluginProcess.start(join(home.rootDir, "device-plugins"), gpu);

  let agent = await start();
  let plugin = await begin();
  try {
    await plugin.offer({ devices: ["a", "b", "!broken"] });
    // Its init container has ended when the agent starts again: the kubelet would fail the pod for that.
    run("first", 1, true);
    await runs("first");
    const config = made.get("first");
    assert.equal(devicesOf("first"), "a");
    assert.deepEqual(config?.devices, [{ containerPath: "/dev/test-a", hostPath: "/dev/null", permissions: "rw" }]);
    assert.equal(config.annotations["example.com/devices"], "a");
    assert.ok(config.mounts.some(({ containerPath, readonly }) => containerPath === "/plugin" && readonly));

    // Who has it is told to those who ask.
    const channel = new UnixChannel(join(home.rootDir, "pod-resources", "kubelet.sock"), (_, error) => error);
    const { fullName, methods } = PodResourcesListerDefinition;
    const options = { operation: "list", deadline: undefined, signal: soon() };
    const { podResources } = await channel.unary(fullName, methods.list, {}, options);
    channel.close();
    assert.deepEqual(
      podResources.map(({ name, containers }) => [name, containers[0]?.devices[0]?.deviceIds]),
      [["first-node-1", ["a"]]],
    );

    const { devices = [] } = await client.resources(soon());
    assert.deepEqual(
      devices.map(({ resource, free, devices: own }) => [
        resource,
        free,
        own.map(({ id, health, holders }) => [id, health, holders.map(({ pod, why }) => `${pod} ${why}`).join()]),
      ]),
      [
        [
          gpu,
          1,
          [
            [
              "a",
              "Healthy",
              "first-node-1 asks for 1; later containers of the pod use it again,first-node-1 asks for 1",
            ],
            ["b", "Healthy", ""],
            ["broken", "Unhealthy", ""],
          ],
        ],
      ],
    );

    // Both die; the pod runs on, and one that comes before the plugin waits for it.
    const before = (await podOf("first"))?.status?.containerStatuses?.[0]?.containerID;
    await plugin.kill();
    await agent.kill();
    agent = await start();
    run("second", 1);
    await waitsFor("second", /the device plugin of vendor.com\/gpu to register/);
    plugin = await begin();
    await plugin.offer({ devices: ["a", "b", "c", "d"] });
    await runs("second");
    assert.equal(devicesOf("second"), "b");
    assert.equal((await podOf("first"))?.status?.containerStatuses?.[0]?.containerID, before);

    // Hung: its own pods wait, no others do. Killed and back: they go on.
    await plugin.order({ behave: "hang" });
    run("third", 1);
    run("plain", 0);
    await runs("plain");
    await waitsFor("third", /its device plugins to say how its devices are used/);
    await plugin.kill();
    await waitsFor("third", /the device plugin of vendor.com\/gpu to register/);
    plugin = await begin();
    await plugin.offer({ devices: ["a", "b", "c", "d"] });
    await runs("third");
    assert.equal(devicesOf("third"), "c");

    await plugin.order({ behave: "rubbish" });
    run("fourth", 1);
    await until("the fourth is refused", async () => (await podOf("fourth"))?.status?.phase === "Failed");
    const refused = (await podOf("fourth"))?.status;
    assert.equal(refused?.reason, "UnexpectedAdmissionError");
    assert.match(refused?.message ?? "", /Pod was rejected: Allocate failed due to rpc error: code = /);
    assert.equal((await podOf("first"))?.status?.phase, "Running");
  } finally {
    await plugin.kill();
  }
});
