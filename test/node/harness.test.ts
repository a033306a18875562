import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { machineProcesses, run, signalProcess } from "../../src/beside/cli/machine/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { startContainerd } from "../support/containerd.ts";
import { makeImage } from "../support/images.ts";
import { runRawPod } from "../support/raw-pod.ts";
import { registryCredentials, startRegistry, tinyImage } from "../support/registry.ts";
import { sweepSlots } from "../support/slots.ts";
import { leftSince, takeTraces } from "../support/traces.ts";
import { soon } from "../support/until.ts";

const webServer = ["sh", "-c", "mkdir /www && echo hello > /www/index.html && exec httpd -f -p 80 -h /www"];

test("a machine runs pods, survives restarts of containerd, and leaves nothing", async () => {
  await sweepSlots();
  const before = await takeTraces();
  {
    await using containerd = await startContainerd();
    const { endpoint, images, cgroupRoot } = containerd;
    const pod = await runRawPod({
      endpoint,
      name: "web",
      image: images.busybox,
      command: webServer,
      cgroupParent: `${cgroupRoot}/web`,
      hostPort: { host: 18999, container: 80 },
    });
    assert.equal(await get(`http://${pod.ip}/`), "hello\n");
    assert.equal(await get("http://127.0.0.1:18999/"), "hello\n");

    await containerd.restart();
    await containerd.kill9();
    assert.equal(await get(`http://${pod.ip}/`), "hello\n");
    await containerd.restart();
    const second = await runRawPod({
      endpoint,
      name: "second",
      image: images.busybox,
      command: webServer,
      cgroupParent: `${cgroupRoot}/second`,
    });
    assert.equal(await get(`http://${second.ip}/`), "hello\n");
    const during = (await takeTraces()).filter((line) => !before.includes(line)).map((line) => line.split(" ")[0]);
    const kinds = ["cgroup", "chain", "cni", "link", "mount", "process", "rule", "shim", "state"];
    assert.deepEqual([...new Set(during)].sort(), kinds, "the comparison sees every kind of thing a machine makes");
  }
  assert.deepEqual(await leftSince(before), []);
});

test("containers whose shim and containerd were killed are removed too", async () => {
  const before = await takeTraces();
  {
    await using containerd = await startContainerd();
    const { endpoint, images, cgroupRoot } = containerd;
    await runRawPod({ endpoint, name: "lost", image: images.busybox, command: webServer, cgroupParent: cgroupRoot });
    await containerd.kill9();
    const shims = (await machineProcesses(containerd.layout)).filter(({ role }) => role === "shim");
    assert.equal(shims.length, 1);
    for (const shim of shims) await signalProcess(shim, "SIGKILL");
  }
  assert.deepEqual(await leftSince(before), []);
});

test("the machine of a killed test process is removed by its watcher", async () => {
  const before = await takeTraces();
  const script = fileURLToPath(new URL("../support/hold-machine.ts", import.meta.url));
  const child = spawn(process.execPath, ["--import", "tsx", script], { stdio: ["ignore", "pipe", "inherit"] });
  await once(createInterface(child.stdout), "line");
  assert.notDeepEqual(await takeTraces(), before);
  child.kill("SIGKILL");
  assert.deepEqual(await leftSince(before), []);
});

test("images carry files, user and environment", async () => {
  await using containerd = await startContainerd();
  const image = await makeImage({
    name: "localhost/test/greeter:1",
    files: {
      "/srv/www/greet": "#!/bin/sh\necho $GREETING from $(id -u) > /tmp/index.html; exec httpd -f -p 8080 -h /tmp\n",
    },
    entrypoint: ["/srv/www/greet"],
    user: "1000",
    env: ["GREETING=hi"],
  });
  await containerd.importImage(image);
  const { endpoint, cgroupRoot } = containerd;
  const pod = await runRawPod({ endpoint, name: "greet", image: image.name, command: [], cgroupParent: cgroupRoot });
  assert.equal(await get(`http://${pod.ip}:8080/`), "hi from 1000\n");
});

for (const auth of ["none", "basic"] as const) {
  test(`containerd pulls from a registry with authentication: ${auth}`, async () => {
    await using containerd = await startContainerd();
    await using registry = await startRegistry({ auth });
    const reference = await registry.push(tinyImage("app"), "team/app", "1");
    const pull = ["--address", containerd.socketPath, "-n", "k8s.io", "images", "pull", "--plain-http"];
    if (auth === "basic") {
      await assert.rejects(run("ctr", [...pull, reference]), /401 Unauthorized|authorization failed|no basic auth/);
      const { username, password } = registryCredentials;
      pull.push("--user", `${username}:${password}`);
    }
    await run("ctr", [...pull, reference]);
    const list = await run("ctr", ["--address", containerd.socketPath, "-n", "k8s.io", "images", "ls", "-q"]);
    assert.ok(list.split("\n").includes(reference));
  });
}

/** Asks again while the server inside the container is still starting. */
async function get(url: string): Promise<string> {
  const giveUp = soon();
  for (;;) {
    try {
      const response = await fetch(url, { signal: giveUp });
      if (response.ok) return await response.text();
    } catch (error) {
      if (giveUp.aborted) throw error;
    }
    await systemClock.sleep(20, giveUp);
  }
}
