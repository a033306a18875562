import assert from "node:assert/strict";
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { until } from "../../../../test/support/until.ts";
import { PodSandboxConfig, Protocol } from "../../../connections/cri/index.ts";
import { never, silentLogger } from "../../../ground/base/index.ts";
import { capabilitiesOf } from "./capabilities.ts";
import { CniNetwork } from "./cni.ts";
import { chooseNetwork, parseNetwork } from "./conf.ts";
import { addressesIn, complaintIn, pluginEnvironment, pluginInput } from "./plugin-call.ts";

for (const { name, result, want } of [
  {
    name: "of today",
    result: {
      interfaces: [{ name: "br0" }, { name: "eth0", sandbox: "/n" }],
      ips: [
        { address: "fd00::2/64", interface: 1 },
        { address: "10.0.0.2/24", interface: 1 },
        { address: "10.0.0.1/24", interface: 0 },
      ],
    },
    want: ["10.0.0.2", "fd00::2"],
  },
  { name: "of version 0.2", result: { ip4: { ip: "10.0.0.3/24" } }, want: ["10.0.0.3"] },
  { name: "without addresses", result: {}, want: [] },
  { name: "that is rubbish", result: [7], want: [] },
]) {
  test(`addresses in a result ${name}`, () => assert.deepEqual(addressesIn(result), want));
}

test("a plugin hears only of capabilities that it has, and what the plugin before it did", () => {
  const list = { name: "net", cniVersion: "0.4.0", plugins: [] };
  const config = PodSandboxConfig.fromPartial({
    portMappings: [{ protocol: Protocol.UDP, containerPort: 53, hostPort: 5353 }, { containerPort: 80 }],
    annotations: { "kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "rubbish" },
  });
  const capabilities = capabilitiesOf(config, "10.1.0.0/24,fd00::/64");
  const plugin = { type: "portmap", capabilities: { portMappings: true, dns: true } };
  assert.deepEqual(pluginInput(list, plugin, capabilities, { ips: [] }), {
    type: "portmap",
    name: "net",
    cniVersion: "0.4.0",
    runtimeConfig: { portMappings: [{ hostPort: 5353, containerPort: 53, protocol: "udp", hostIP: "" }] },
    prevResult: { ips: [] },
  });
  assert.deepEqual(capabilities["bandwidth"], { ingressRate: 10_000_000, ingressBurst: 2_147_483_647 });
  assert.deepEqual(capabilities["ipRanges"], [[{ subnet: "10.1.0.0/24" }]]);
  const env = pluginEnvironment("ADD", { sandboxId: "sid", pod: "p", namespace: "n" }, "/proc/1/ns/net", ["/a", "/b"]);
  assert.equal(env["CNI_ARGS"], "IgnoreUnknown=1;K8S_POD_NAMESPACE=n;K8S_POD_NAME=p;K8S_POD_INFRA_CONTAINER_ID=sid");
  assert.equal(env["CNI_PATH"], "/a:/b");
});

for (const { file, content, want } of [
  { file: "a.conflist", content: '{"name":"n","plugins":[{"type":"bridge"}]}', want: "n" },
  { file: "a.conf", content: '{"name":"n","type":"bridge"}', want: "n" },
  { file: "a.conflist", content: '{"name":"n","plugins":[]}', want: undefined },
  { file: "a.conf", content: '{"name":"n","type":"../../bin/sh"}', want: undefined },
  { file: "a.conf", content: "rubbish", want: undefined },
]) {
  test(`network of ${content}`, () => {
    const found = parseNetwork(file, content);
    assert.equal("problem" in found ? undefined : found.name, want);
  });
}

test("files of the directory that can't be read are passed over: links to nowhere, directories, changes meanwhile", async () => {
  const directory = await mkdtemp(join(tmpdir(), "cni-conf-"));
  try {
    await symlink(join(directory, "gone"), join(directory, "10-link.conflist"));
    await mkdir(join(directory, "20-directory.conf"));
    const only = await chooseNetwork(directory, [directory]);
    assert.match("problem" in only ? only.problem : "", /20-directory\.conf: not a file/);
    await writeFile(join(directory, "30-good.conf"), '{"name":"good","type":"bridge"}');
    await writeFile(join(directory, "bridge"), "");
    const found = await chooseNetwork(directory, [directory]);
    assert.equal("problem" in found ? found.problem : found.name, "good");
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a plugin's complaint is in its own words, cut to a size", () => {
  assert.equal(complaintIn('{"code":7,"msg":"no room","details":"at all"}', "x"), "no room; at all");
  assert.equal(complaintIn("rubbish", "exited with 1"), "exited with 1");
  assert.equal(complaintIn("", "y".repeat(9000)).length, 4096);
});

const pod = { sandboxId: "a".repeat(64), pod: "p", namespace: "n" };

/** A network of one plugin, which is a script; what it was called for stands in `calls`. */
async function withPlugin(
  add: string,
  work: (cni: CniNetwork, directory: string, clock: FakeClock) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), "shim-cni-"));
  const clock = new FakeClock();
  try {
    for (const name of ["conf", "bin", "state"]) await mkdir(join(directory, name));
    await writeFile(join(directory, "conf/a.conf"), '{"name":"net","cniVersion":"0.4.0","type":"own"}');
    const script = `#!/bin/sh\ncat >/dev/null\necho $CNI_COMMAND >>${directory}/calls\n[ $CNI_COMMAND = DEL ] && exit\n${add}\n`;
    await writeFile(join(directory, "bin/own"), script);
    await chmod(join(directory, "bin/own"), 0o755);
    const settings = {
      confDir: join(directory, "conf"),
      binDirs: [join(directory, "bin")],
      stateDir: join(directory, "state"),
    };
    await work(new CniNetwork(settings, { clock, log: silentLogger, env: process.env }), directory, clock);
  } finally {
    await rm(directory, { recursive: true });
  }
}

for (const { name, add, want } of [
  { name: "answers rubbish", add: "echo rubbish", want: /what is no JSON/ },
  { name: "answers with a list", add: "echo '[7]'", want: /gave the pod no address/ },
  { name: "gives no address", add: "echo '{}'", want: /gave the pod no address/ },
  {
    name: "gives an address that is none",
    add: 'echo \'{"ips":[{"address":"1.2.3.999/24"}]}\'',
    want: /gave the pod no address/,
  },
  { name: "fails", add: 'echo \'{"code":11,"msg":"no room"}\'; exit 1', want: /failed \(add\): no room/ },
]) {
  test(`a plugin that ${name} gives no network, and is asked to take back what it did`, async () => {
    await withPlugin(add, async (cni, directory) => {
      await assert.rejects(cni.setUp(pod, "/proc/1/ns/net", {}, never), want);
      assert.equal(await cni.addressesOf(pod.sandboxId), undefined);
      await cni.tearDown(pod, undefined, {}, never);
      assert.equal(await readFile(join(directory, "calls"), "utf8"), "ADD\nDEL\n");
      assert.deepEqual(await readdir(join(directory, "state")), []);
    });
  });
}

test("a plugin that hangs is ended, with what it has started", async () => {
  await withPlugin("sleep 4713 & echo $! >$0.pid; wait", async (cni, directory, clock) => {
    const failed = assert.rejects(cni.setUp(pod, "/proc/1/ns/net", {}, never), /did not answer within 220 s/);
    const child = async (): Promise<string> =>
      (await readFile(join(directory, "bin/own.pid"), "utf8").catch(() => "")).trim();
    await until("the plugin has a child", async () => (await child()) !== "");
    await clock.advance(220_000);
    await failed;
    const pid = await child();
    await until("the child is gone", async () => {
      const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
      return state === "" || state.includes(") Z ");
    });
  });
});

test("a plugin that hangs for many pods keeps another pod waiting for a moment, not for their end", async () => {
  const add = `case $CNI_ARGS in *=hung*) sleep 4714;; esac; echo '{"ips":[{"address":"10.0.0.2/24"}]}'`;
  await withPlugin(add, async (cni, directory, clock) => {
    const callers = Array.from({ length: 16 }, () => new AbortController());
    const hung = callers.map(({ signal }, index) => {
      const sandboxId = `${index}`.padStart(64, "0");
      return cni.setUp({ sandboxId, pod: `hung${index}`, namespace: "n" }, "/proc/1/ns/net", {}, signal);
    });
    const left = Promise.allSettled(hung);
    const calls = async (): Promise<number> =>
      (await readFile(join(directory, "calls"), "utf8").catch(() => "")).split("\n").length - 1;
    await until("all of them hang", async () => (await calls()) === 16);
    const other = cni.setUp(pod, "/proc/1/ns/net", {}, never);
    await clock.advance(20_000);
    assert.deepEqual(await other, ["10.0.0.2"]);
    for (const caller of callers) caller.abort();
    await left;
  });
});
