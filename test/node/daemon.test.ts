import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, existsSync, openSync, statSync, writeFileSync, writeSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { DaemonHome, nodelet } from "../support/daemon.ts";
import { DatagramReceiver } from "../support/datagram-receiver.ts";
import { freePort } from "../support/free-port.ts";
import { serveFakeRuntime } from "../support/served-runtime.ts";
import { TraceCollector } from "../support/trace-collector.ts";

const runtimeIs = (state: RegExp, text: string | undefined): boolean => state.test(text ?? "");

test("starts without a runtime, says what it waits for, connects when it comes, stops in order", async () => {
  await using home = await DaemonHome.create();
  const notifySocket = join(home.directory, "notify.sock");
  await using systemd = await DatagramReceiver.listen(notifySocket);
  const agent = home.start({ env: { NOTIFY_SOCKET: notifySocket } });
  await agent.isUp();
  await agent.until("the runtime was tried", async () =>
    runtimeIs(/\[~\]runtime waiting for \d+s: .*runtime\.sock.*ENOENT/, await agent.healthz("/healthz?verbose")),
  );
  await agent.until("it said so", () => /W.*"waiting for the container runtime"/.test(agent.stderr));
  await agent.until("systemd was told", () => systemd.received().length > 0);
  assert.match(systemd.received()[0] ?? "", /^READY=1\nSTATUS=Waiting for the container runtime at unix:/);

  await using _runtime = await serveFakeRuntime(home.runtimeSocket);
  await agent.until("the runtime was there", async () =>
    runtimeIs(/\[\+\]runtime ok \(proven \d+s ago\)/, await agent.healthz("/healthz?verbose")),
  );
  await agent.until("it had started", () => agent.stderr.includes('"Started nodelet"'));
  assert.match(agent.stderr, /"Using cgroup driver" cgroupDriver="cgroupfs" source="container runtime"/);
  assert.match(systemd.received().at(-1) ?? "", /STATUS=Connected to simulated 1\.2\.3/);

  agent.signal("SIGTERM");
  assert.deepEqual(await agent.exited, { code: 0, signal: null });
  assert.match(systemd.received().at(-1) ?? "", /^STOPPING=1/);
  assert.match(agent.stderr, /"Stopped; containers keep running"\n$/);
  assert.equal(existsSync(join(home.rootDir, "nodelet.sock")), false);
  assert.doesNotMatch(agent.stderr, /\n\s+at /);
});

test("traces that others follow reach the collector, also the last ones", async () => {
  using collector = await TraceCollector.start();
  await using home = await DaemonHome.create();
  home.configure({ tracing: { endpoint: collector.endpoint } });
  const agent = home.start();
  await agent.isUp();
  const asked = async (traceparent: string): Promise<number> => {
    const options = { host: "127.0.0.1", port: home.apiPort, path: "/pods", rejectUnauthorized: false, agent: false };
    const sent = request({ ...options, headers: { traceparent } }).end();
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode ?? 0;
  };
  const span = `0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331`;
  await agent.until("the node API answers", async () => (await asked(`00-${span}-00`).catch(() => 0)) === 200);
  assert.equal(await asked(`00-${span}-01`), 200);
  agent.signal("SIGTERM");
  assert.deepEqual(await agent.exited, { code: 0, signal: null });
  assert.deepEqual(collector.names, ["GET /pods"]);
});

test("a signal while it waits for the runtime ends it just as well", async () => {
  await using home = await DaemonHome.create();
  const agent = home.start();
  await agent.isUp();
  agent.signal("SIGINT");
  assert.deepEqual(await agent.exited, { code: 0, signal: null });
});

/** A pipe that is full and that nobody reads. */
function stalledPipe(directory: string): { readonly fd: number; close(): void } {
  const path = join(directory, "stalled");
  spawnSync("mkfifo", [path]);
  const ours = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  try {
    for (;;) writeSync(ours, Buffer.alloc(4096));
  } catch (error) {
    assert.match(String(error), /EAGAIN/);
  }
  const fd = openSync(path, "w");
  return {
    fd,
    close: () => {
      closeSync(fd);
      closeSync(ours);
    },
  };
}

test("a log that nobody reads holds up neither work nor exit", async () => {
  await using home = await DaemonHome.create();
  const pipe = stalledPipe(home.directory);
  const agent = home.start({ stderr: pipe.fd });
  await agent.isUp();
  agent.signal("SIGTERM");
  assert.deepEqual(await agent.exited, { code: 0, signal: null });
  pipe.close();
});

test("a second signal ends it at once with 1", async () => {
  await using home = await DaemonHome.create();
  // The stop is a matter of milliseconds; a stalled log makes it last long enough for a second signal.
  const pipe = stalledPipe(home.directory);
  const agent = home.start({ stderr: pipe.fd });
  await agent.isUp();
  agent.signal("SIGTERM");
  agent.signal("SIGINT");
  assert.deepEqual(await agent.exited, { code: 1, signal: null });
  pipe.close();
});

test("directories, configuration, pods and log level through the local socket; read-only port", async () => {
  await using home = await DaemonHome.create();
  const readOnlyPort = await freePort();
  home.configure({ readOnlyPort, maxPods: 17, syncFrequency: "1m30s" });
  const agent = home.start();
  await agent.isUp();
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
  for (const name of ["pods", "plugins", "plugins_registry", "pod-resources"]) {
    assert.equal(mode(join(home.rootDir, name)), "750", name);
  }
  assert.equal(mode(join(home.rootDir, "checkpoints")), "700");
  assert.equal(mode(join(home.directory, "logs")), "750");
  assert.equal(mode(join(home.rootDir, "nodelet.sock")), "600");
  const { kubeletconfig } = JSON.parse((await agent.ask("/configz")).text);
  assert.equal(kubeletconfig.maxPods, 17);
  assert.equal(kubeletconfig.syncFrequency, "1m30s");
  assert.equal(JSON.parse((await agent.ask("/pods")).text).kind, "PodList");
  await agent.until("the read-only port is open", () => agent.stderr.includes('"Started to listen read-only"'));
  const listed = await fetch(`http://127.0.0.1:${readOnlyPort}/pods`);
  assert.equal(((await listed.json()) as { kind: string }).kind, "PodList");
  const change = await agent.ask("/debug/flags/v", "PUT", "4");
  assert.equal(change.text, "successfully set klog.logging.verbosity to 4");
  agent.signal("SIGTERM");
  await agent.exited;
  // Only shown at this verbosity.
  assert.match(agent.stderr, /"The start was given up"/);
});

/** GET on the agent's API, believing in whatever certificate it shows. */
async function askApi(port: number, path: string): Promise<{ readonly status: number; readonly text: string }> {
  const sent = request({ host: "127.0.0.1", port, path, agent: false, rejectUnauthorized: false }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode ?? 0, text };
}

test("the API of the node, with a certificate of its own, for whom the configuration lets in", async () => {
  await using home = await DaemonHome.create();
  const agent = home.start();
  await agent.until("the API is open", () => agent.stderr.includes('"Started to listen"'));
  assert.equal((await askApi(home.apiPort, "/healthz")).text, "ok");
  assert.equal(JSON.parse((await askApi(home.apiPort, "/pods")).text).kind, "PodList");
  assert.equal(JSON.parse((await askApi(home.apiPort, "/configz")).text).kubeletconfig.port, home.apiPort);
  assert.equal((await askApi(home.apiPort, "/containerLogs/a/b/c")).text, 'pod "b" does not exist');
  assert.equal(statSync(join(home.rootDir, "pki", "kubelet.key")).mode & 0o777, 0o600);
  agent.signal("SIGTERM");
  assert.deepEqual(await agent.exited, { code: 0, signal: null });
  home.configure({
    authentication: { webhook: { enabled: false }, anonymous: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
  });
  const shut = home.start();
  await shut.until("the API is open", () => shut.stderr.includes('"Started to listen"'));
  assert.deepEqual(await askApi(home.apiPort, "/pods"), { status: 401, text: "Unauthorized" });
  assert.match(shut.stderr, /refuses every request/);
});

test("an API port in use ends the agent with 1", async () => {
  await using home = await DaemonHome.create();
  const occupant = createServer().listen(home.apiPort, "127.0.0.1");
  await once(occupant, "listening");
  const agent = home.start();
  assert.equal((await agent.exited).code, 1);
  assert.match(agent.stderr, new RegExp(`Failed to listen and serve on 127.0.0.1:${home.apiPort}.*EADDRINUSE`));
  occupant.close();
});

test("the lock file passes from one agent to the next", async () => {
  await using first = await DaemonHome.create();
  await using second = await DaemonHome.create();
  const args = [`--lock-file=${join(first.directory, "lock")}`, "--exit-on-lock-contention"];
  const holder = first.start({ args });
  await holder.isUp();
  const successor = second.start({ args });
  assert.deepEqual(await holder.exited, { code: 0, signal: null });
  assert.match(holder.stderr, /another process wants the lock file/);
  await successor.isUp();
  // Whoever merely opens the file wants the lock, too.
  closeSync(openSync(join(first.directory, "lock"), "r"));
  assert.deepEqual(await successor.exited, { code: 0, signal: null });
});

test("one agent per root directory; after a kill the next one starts there", async () => {
  await using home = await DaemonHome.create();
  const first = home.start();
  await first.isUp();
  const second = home.start();
  assert.equal((await second.exited).code, 1);
  assert.match(second.stderr, new RegExp(`"command failed" err=".*in use by another agent \\(process ${first.pid}\\)`));
  assert.equal(await first.healthz(), "ok");
  await first.kill();
  assert.equal(existsSync(join(home.rootDir, "nodelet.sock")), true);
  const third = home.start();
  await third.isUp();
  assert.equal((await third.ask("/healthz")).text, "ok");
});

test("signs of life for systemd's watchdog", async () => {
  await using home = await DaemonHome.create();
  const notifySocket = join(home.directory, "notify.sock");
  await using systemd = await DatagramReceiver.listen(notifySocket);
  const agent = home.start({ env: { NOTIFY_SOCKET: notifySocket, WATCHDOG_USEC: "1200000" } });
  const signs = () => systemd.received().filter((message) => message === "WATCHDOG=1").length;
  await agent.until("three signs arrived", () => signs() >= 3);
});

const stackLine = /\n\s+at .*[:(]/;

for (const { name, args, env, fields, complaints } of [
  {
    name: "a bad configuration with all its problems",
    fields: { healthzPort: 70_000, maxPods: -1, registryPullQPS: -2 },
    complaints: [/healthzPort/, /maxPods/, /registryPullQPS/],
  },
  { name: "an unknown flag", args: ["--no-such-flag=1"], complaints: [/failed to parse kubelet flag: .*no-such-flag/] },
  { name: "an unknown command", args: ["frobnicate"], complaints: [/unknown command frobnicate/] },
  {
    name: "a watchdog it cannot satisfy",
    env: { WATCHDOG_USEC: "soon" },
    complaints: [/create health checker: WATCHDOG_USEC is \\"soon\\"/],
  },
  {
    name: "webhooks without an API server",
    fields: { authentication: { webhook: { enabled: true } } },
    complaints: [/no client provided, cannot use webhook authentication/],
  },
  {
    name: "contention without a lock file",
    args: ["--exit-on-lock-contention"],
    complaints: [/cannot exit on lock file contention: no lock file specified/],
  },
  {
    name: "an endpoint that is no socket",
    fields: { containerRuntimeEndpoint: "tcp://127.0.0.1:1" },
    complaints: [/only support unix socket endpoint/],
  },
]) {
  test(`refuses ${name}: exit 1, in words, without a stack`, async () => {
    await using home = await DaemonHome.create();
    if (fields !== undefined) home.configure(fields);
    const agent = home.start({ args: args ?? [], env: env ?? {} });
    assert.deepEqual(await agent.exited, { code: 1, signal: null });
    assert.match(agent.stderr, /"command failed" err=/);
    for (const complaint of complaints) assert.match(agent.stderr, complaint);
    assert.doesNotMatch(agent.stderr, stackLine);
  });
}

test("says which settings nothing acts on yet, and every flag at -v=1, but no credentials", async () => {
  await using home = await DaemonHome.create();
  const header = "--manifest-url-header=Authorization:Bearer s3cret-t0ken";
  const agent = home.start({ args: ["-v=5", "--experimental-mounter-path=/runtime", header] });
  await agent.isUp();
  agent.signal("SIGTERM");
  await agent.exited;
  assert.match(agent.stderr, /Flag --manifest-url-header has been deprecated/);
  assert.match(
    agent.stderr,
    /W.*"These settings are read and checked, but nothing acts on them yet" settings=.*"--experimental-mounter-path"/,
  );
  assert.match(agent.stderr, /"FLAG: --experimental-mounter-path=\\"\/runtime\\""/);
  assert.match(agent.stderr, /"FLAG: --manifest-url-header=\\"<masked>\\""/);
  assert.match(agent.stderr, /"Effective configuration" config=.*"staticPodURLHeader":\{"Authorization":"<masked>"\}/);
  assert.doesNotMatch(agent.stderr, /s3cret-t0ken/);
});

for (const { words, code, out } of [
  { words: ["version"], code: 0, out: /^nodelet \d/ },
  { words: ["--version"], code: 0, out: /^Kubernetes v1\.34\.\d+\n$/ },
  { words: ["config", "--check"], code: 0, out: /valid/ },
  { words: ["config", "--check", "--max-pods=-1"], code: 1, out: /^$/ },
  { words: ["--help"], code: 0, out: /Usage:/ },
]) {
  test(`nodelet ${words.join(" ")}: exit ${code}`, () => {
    const { status, stdout } = spawnSync(nodelet, words, { encoding: "utf8" });
    assert.equal(status, code);
    assert.match(stdout, out);
  });
}

for (const { name, pipeline, expected } of [
  {
    name: "a slow reader gets all of it",
    pipeline: "(sleep 0.3; tail -n 8)",
    expected: /storage-driver-buffer-duration/,
  },
  { name: "a reader that leaves causes no complaint", pipeline: "head -n 1", expected: /^apiVersion: .*\n$/ },
]) {
  test(`output through a pipe: ${name}`, async () => {
    await using home = await DaemonHome.create();
    // More than the 64 KiB a pipe holds.
    home.configure({
      allowedUnsafeSysctls: Array.from({ length: 5_000 }, (_, index) => `net.ipv4.some.setting_${index}`),
    });
    const command = `'${nodelet}' config --config='${home.configFile}' | ${pipeline}`;
    const { stdout, stderr } = spawnSync("sh", ["-c", command], { encoding: "utf8" });
    assert.match(stdout, expected);
    assert.doesNotMatch(stderr, /defect|EPIPE/);
  });
}

test("with -v=4 an expected failure comes with its stack", async () => {
  await using home = await DaemonHome.create();
  writeFileSync(join(home.rootDir, "nodelet.sock"), "in the way");
  const agent = home.start({ args: ["-v=4"] });
  assert.equal((await agent.exited).code, 1);
  assert.match(agent.stderr, /"command failed" err=".*exists and is not a socket/);
  assert.match(agent.stderr, stackLine);
});

test("logs JSON when asked to", async () => {
  await using home = await DaemonHome.create();
  const agent = home.start({ args: ["--logging-format=json"] });
  await agent.isUp();
  agent.signal("SIGTERM");
  await agent.exited;
  const lines = agent.stderr.trim().split("\n");
  const logged = lines.filter((line) => !line.startsWith("Flag --")).map((line) => JSON.parse(line));
  assert.ok(logged.some(({ msg, v }) => msg === "Starting nodelet" && v === 0));
});
