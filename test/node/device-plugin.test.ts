// A device plugin, as a process of its own, beside the built agent and a real containerd: it is killed, comes back, hangs
// and talks rubbish. Pods that run never notice; pods that come wait for it, and nobody else does.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isReady } from "../support/agent.ts";
import { buildPluginProgram, PluginProcess } from "../support/device-plugin-process.ts";
import { idOf, isOver, statusOf, TestNode } from "../support/test-node.ts";
import { until } from "../support/until.ts";

const gpu = "vendor.com/gpu";
let program: AsyncDisposable;
let node: TestNode;
let plugin: PluginProcess;
before(async () => {
  program = await buildPluginProgram();
  node = await TestNode.start();
});
after(async () => {
  await plugin?.kill();
  await node?.[Symbol.asyncDispose]();
  await program?.[Symbol.asyncDispose]();
});

const begin = (): Promise<PluginProcess> => PluginProcess.start(join(node.agent.rootDir, "device-plugins"), gpu);

test("pods have devices whatever becomes of the plugin", async () => {
  const trace = await node.trace("devices");
  const run = (name: string, devices: number): Promise<void> =>
    node.agent.apply(name, {
      volumes: [trace.volume],
      containers: [
        node.shell(
          "main",
          `echo ${name} $TEST_DEVICES $(ls /dev | grep test-) $(ls /plugin | grep -c sock) >> /trace/words; sleep 1d & wait`,
          { volumeMounts: [trace.mount], ...(devices > 0 && { resources: { limits: { [gpu]: String(devices) } } }) },
        ),
      ],
    });
  const has = async (line: string): Promise<boolean> => (await trace.words()).includes(line);
  const waitsFor = (name: string, what: RegExp): Promise<void> =>
    until(`${name} waits`, async () => {
      // It may not have been read yet.
      const answer = await node.agent.client.ledger(name, AbortSignal.timeout(10_000)).catch(() => undefined);
      return what.test(JSON.stringify(answer?.ledger));
    });

  plugin = await begin();
  await plugin.offer({ devices: ["a", "b", "!broken"] });
  await run("first", 1);
  const first = await node.agent.until("first", "ready", isReady);
  await until("it has its device", () => has("first a test-a 2"));

  // Plugin and agent die together, as in a machine that loses its power but not its pods.
  await plugin.kill();
  await node.agent.kill9();
  await node.agent.launch();
  await run("second", 1);
  await waitsFor("second", /the device plugin of vendor.com\/gpu to register/);
  plugin = await begin();
  await plugin.offer({ devices: ["a", "b", "c", "d", "!broken"] });
  await node.agent.until("second", "ready", isReady);
  await until("it has the other device", () => has("second b test-b 2"));
  const again = await node.agent.until("first", "ready", isReady);
  assert.equal(idOf(statusOf(again, "main")), idOf(statusOf(first, "main")), "the first one was not touched");

  // A plugin that hangs holds up its own pods only; once it is killed, they wait for its return.
  await plugin.order({ behave: "hang" });
  await run("third", 1);
  await run("plain", 0);
  await node.agent.until("plain", "ready", isReady);
  await waitsFor("third", /its device plugins to say how its devices are used/);
  await plugin.kill();
  await waitsFor("third", /the device plugin of vendor.com\/gpu to register/);
  plugin = await begin();
  await plugin.offer({ devices: ["a", "b", "c", "d"] });
  await node.agent.until("third", "ready", isReady);
  await until("it has the next device", () => has("third c test-c 2"));

  await plugin.order({ behave: "rubbish" });
  await run("fourth", 1);
  const refused = await node.agent.until("fourth", "refused", isOver);
  assert.equal(refused.status?.reason, "UnexpectedAdmissionError");
  assert.match(refused.status?.message ?? "", /Pod was rejected: Allocate failed due to rpc error: code = /);
  const last = await node.agent.until("first", "ready", isReady);
  assert.equal(idOf(statusOf(last, "main")), idOf(statusOf(first, "main")));
});
