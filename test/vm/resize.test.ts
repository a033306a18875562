// Resizes of containers and of pods as a whole on cgroup v2, with systemd as the owner of the tree.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Pod } from "../../src/ground/model/index.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { podSlice, readSlices, type SliceFiles } from "./machine/slices.ts";

const mebibyte = 2 ** 20;
const amounts = (cpu: string, memory: string) => ({ requests: { cpu, memory }, limits: { cpu, memory } });

/** One request to the API server as its administrator; prints the answer, and fails with anything but success. */
const askScript = `
const { readFileSync } = require("fs");
const { request } = require("https");
const config = JSON.parse(readFileSync("/var/lib/nodelet-api/admin.kubeconfig", "utf8"));
const { server, "certificate-authority-data": ca } = config.clusters[0].cluster;
const { "client-certificate-data": cert, "client-key-data": key } = config.users[0].user;
const bytes = (text) => (text === undefined ? undefined : Buffer.from(text, "base64"));
const [method, path, body] = process.argv.slice(2);
const type = method === "PATCH" ? "application/strategic-merge-patch+json" : "application/json";
const options = { method, headers: { "content-type": type }, ca: bytes(ca), cert: bytes(cert), key: bytes(key) };
const asked = request(new URL(path, server), options, (response) => {
  response.pipe(process.stdout);
  response.on("end", () => (process.exitCode = response.statusCode < 300 ? 0 : 1));
});
asked.end(body === undefined ? undefined : readFileSync(body));
`;

let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "resize" });
  const featureGates = { InPlacePodLevelResourcesVerticalScaling: true };
  agent = await GuestAgent.start(machine, { api: true, config: { featureGates } });
  await machine.putFile("/run/vm-ask.cjs", askScript);
});
after(() => machine?.[Symbol.asyncDispose]());

const pods = "/api/v1/namespaces/default/pods";

async function ask(method: string, path: string, body: object): Promise<void> {
  await machine.putFile("/run/vm-body.json", JSON.stringify(body));
  await machine.run(`node /run/vm-ask.cjs ${method} ${path} /run/vm-body.json`);
}

async function create(pod: Pod): Promise<void> {
  await ask("POST", pods, { ...pod, spec: { ...pod.spec, nodeName: "vm" } });
}

/** The pod as the agent shows it, once it has come to rest with a limit. */
async function resized(name: string, spec: object, memoryMax: string): Promise<Pod> {
  const pod = (await agent.pods()).get(name);
  const { uid = "" } = pod?.metadata ?? {};
  await ask("PATCH", `${pods}/${name}/resize`, { spec });
  await machine.until("the slice has the limit", `[ "$(cat ${pathOf(uid)}/memory.max)" = ${memoryMax} ]`);
  await machine.until(
    "nothing is under way",
    `! curl -sS --unix-socket /var/lib/kubelet/nodelet.sock http://agent/pods | grep -q PodResize`,
  );
  const now = (await agent.pods()).get(name);
  assert.ok(now !== undefined);
  assert.equal(now.status?.containerStatuses?.[0]?.restartCount, 0);
  return now;
}

function pathOf(uid: string): string {
  return `/sys/fs/cgroup/kubepods.slice/${podSlice(uid, "guaranteed")}`;
}

async function containerFiles(pod: Pod): Promise<string> {
  const id = pod.status?.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, "") ?? "";
  const scope = `${pathOf(pod.metadata?.uid ?? "")}/cri-containerd-${id}.scope`;
  return await machine.run(`cat ${scope}/memory.max ${scope}/cpu.max`);
}

async function assertSlice(pod: Pod, wanted: Partial<SliceFiles>): Promise<void> {
  const slice = podSlice(pod.metadata?.uid ?? "", "guaranteed");
  for (const moment of ["after the resize", "after a reload of systemd"]) {
    const found = (await readSlices(machine)).get(slice);
    for (const [file, text] of Object.entries(wanted)) assert.equal(found?.[file as keyof SliceFiles], text, moment);
    await machine.run("systemctl daemon-reload");
  }
}

test("a container gets more and less, its slice around it, and systemd knows", async () => {
  await create(busyboxPod("one", idleScript, { resources: amounts("200m", "64Mi") }));
  await agent.untilReady(["one"]);
  for (const [cpu, memory, weight] of [
    ["500m", 128, "20"],
    ["100m", 48, "4"],
  ] as const) {
    const resources = amounts(cpu, `${memory}Mi`);
    const bytes = String(memory * mebibyte);
    const now = await resized("one", { containers: [{ name: "main", resources }] }, bytes);
    const max = `${Number.parseInt(cpu, 10) * 100} 100000`;
    assert.equal(await containerFiles(now), `${bytes}\n${max}`);
    await assertSlice(now, { "memory.max": bytes, "cpu.max": max, "cpu.weight": weight });
    assert.deepEqual(now.status?.containerStatuses?.[0]?.resources, resources);
  }
});

test("a pod as a whole gets more and less, and its container without limits with it", async () => {
  await create(busyboxPod("whole", idleScript, { spec: { resources: amounts("200m", "64Mi") } }));
  await agent.untilReady(["one", "whole"]);
  for (const [cpu, memory, weight] of [
    ["600m", 96, "24"],
    ["150m", 40, "6"],
  ] as const) {
    const resources = amounts(cpu, `${memory}Mi`);
    const bytes = String(memory * mebibyte);
    const now = await resized("whole", { resources }, bytes);
    const max = `${Number.parseInt(cpu, 10) * 100} 100000`;
    assert.equal(await containerFiles(now), `${bytes}\n${max}`);
    await assertSlice(now, { "memory.max": bytes, "cpu.max": max, "cpu.weight": weight });
    assert.deepEqual((now.status as { readonly resources?: object }).resources, resources);
  }
});

test("an agent that is killed and started anew changes nothing of it", async () => {
  const before = [...(await readSlices(machine))];
  const tasks = await agent.tasks();
  const pid = await agent.property("MainPID");
  await machine.run(`kill -9 ${pid}`);
  const isBack = `p=$(systemctl show --value -p MainPID nodelet); [ $p != ${pid} ] && [ $p != 0 ] && systemctl is-active nodelet`;
  await machine.until("systemd starts the agent again", isBack);
  await agent.untilReady(["one", "whole"]);
  assert.deepEqual([...(await readSlices(machine))], before);
  assert.deepEqual(await agent.tasks(), tasks);
});
