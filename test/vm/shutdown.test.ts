// The machine is turned off with twenty pods: each has its group's time, the API server hears how each ended before the
// machine is off, and after the boot what comes back does so once.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Event, Node, Pod } from "../../src/ground/model/index.ts";
import { busyboxPod, GuestAgent } from "./machine/guest-agent.ts";
import { GuestApi } from "./machine/guest-api.ts";
import { VirtualMachine } from "./machine/machine.ts";

const groups = [
  { priority: 0, seconds: 90, className: undefined },
  { priority: 1_000, seconds: 60, className: "middle" },
  { priority: 2_000_000_000, seconds: 90, className: "system-cluster-critical" },
];
/** Whoever is killed at the very end of all has little time to be reported: too little for an emulated machine. */
const lastGroup = groups.length - 1;
const totalSeconds = groups.reduce((sum, { seconds }) => sum + seconds, 0);

/** How it takes SIGTERM: it ends at once, works on it for a while, or does not end at all. */
type Manner = "polite" | "slow" | "stubborn";
interface Case {
  readonly name: string;
  readonly group: number;
  readonly manner: Manner;
  readonly graceSeconds: number;
  readonly hook?: true;
  readonly isStatic?: true;
}

const cases: readonly Case[] = [
  ...groups.flatMap((_, group): Case[] => [
    { name: `long${group}`, group, manner: "stubborn", graceSeconds: group === lastGroup ? 10 : 300 },
    { name: `short${group}`, group, manner: "stubborn", graceSeconds: 6 },
    { name: `polite${group}`, group, manner: "polite", graceSeconds: 300 },
    { name: `slow${group}`, group, manner: "slow", graceSeconds: 300, hook: true },
    { name: `fixed${group}`, group, manner: "polite", graceSeconds: 300, isStatic: true },
    { name: `fixed-short${group}`, group, manner: "stubborn", graceSeconds: 6, isStatic: true },
  ]),
  { name: "hooked", group: 0, manner: "stubborn", graceSeconds: 300, hook: true },
  { name: "fixed-hooked", group: 2, manner: "slow", graceSeconds: 300, hook: true, isStatic: true },
];
const statics = cases.filter(({ isStatic }) => isStatic === true);
const shownName = ({ name, isStatic }: Case): string => (isStatic ? `${name}-vm` : name);

const notes = "/var/lib/shutdown-notes";
const note = (name: string, what: string): string =>
  `read up rest < /proc/uptime; echo $up >> ${notes}/${name}.${what}`;
const manners: Readonly<Record<Manner, (name: string) => string>> = {
  polite: (name) => `trap '${note(name, "term")}; exit 0' TERM; sleep 100000 & wait`,
  slow: (name) => `trap '${note(name, "term")}; sleep 2; ${note(name, "alive")}; exit 0' TERM; sleep 100000 & wait`,
  stubborn: (name) =>
    `trap '${note(name, "term")}' TERM; sleep 100000 & wait; while :; do ${note(name, "alive")}; sleep 1; done`,
};

function podOf({ name, group, manner, graceSeconds, hook, isStatic }: Case): Pod {
  const pod = busyboxPod(name, `echo x >> ${notes}/${name}.starts; ${manners[manner](name)}`);
  const [main] = pod.spec?.containers ?? [];
  if (main === undefined) throw new Error("a pod has a container");
  const preStop = { exec: { command: ["sh", "-c", note(name, "hook")] } };
  const container = {
    ...main,
    volumeMounts: [{ name: "notes", mountPath: notes }],
    ...(hook && { lifecycle: { preStop } }),
  };
  return {
    ...pod,
    spec: {
      hostNetwork: true,
      nodeName: "vm",
      ...(groups[group]?.className !== undefined && { priorityClassName: groups[group].className }),
      // The API server computes it from the class.
      ...(isStatic && { priority: groups[group]?.priority }),
      terminationGracePeriodSeconds: graceSeconds,
      containers: [container],
      volumes: [{ name: "notes", hostPath: { path: notes } }],
    },
  } as Pod;
}

let machine: VirtualMachine;
let agent: GuestAgent;
let api: GuestApi;
before(async () => {
  machine = await VirtualMachine.start({ name: "shutdown", memoryMb: 3072 });
  await machine.run(`mkdir ${notes}`);
  const byPriority = groups.map(({ priority, seconds }) => ({ priority, shutdownGracePeriodSeconds: seconds }));
  agent = await GuestAgent.start(machine, { api: true, config: { shutdownGracePeriodByPodPriority: byPriority } });
  api = await GuestApi.open(machine);
});
after(() => machine?.[Symbol.asyncDispose]());

const lockIsHeld = "systemd-inhibit --list --no-legend | grep '^kubelet .*shutdown.*delay'";

test("the lock of logind is held, for as long as all groups need and some more to report", async () => {
  await machine.until("the lock is held", lockIsHeld);
  const setting = await machine.run("cat /etc/systemd/logind.conf.d/99-kubelet.conf");
  const seconds = Number(/^InhibitDelayMaxSec=(\d+)$/m.exec(setting)?.[1]);
  assert.ok(seconds > totalSeconds, setting);
  const get = "busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager";
  assert.equal(await machine.run(`${get} InhibitDelayMaxUSec`), `t ${seconds * 1_000_000}`);
});

test("twenty pods run, and the dry run has each in its group", async () => {
  assert.equal(cases.length, 20);
  const middle = { metadata: { name: "middle" }, value: 1_000 };
  await api.create("/apis/scheduling.k8s.io/v1/priorityclasses", [middle]);
  await agent.putStaticPods(statics.map(podOf));
  await api.createPods(cases.filter(({ isStatic }) => isStatic !== true).map(podOf));
  await agent.untilReady(cases.map(shownName));
  const text = await machine.run("/opt/nodelet/bin/nodelet shutdown --dry-run");
  const parts = text.split(/^priority /m).slice(1);
  assert.equal(parts.length, groups.length, text);
  for (const each of cases) assert.match(parts[each.group] ?? "", new RegExp(`default/${shownName(each)} `), text);
});

test("stopping the agent alone ends nothing, and gives back the lock", async () => {
  const before = await agent.tasks();
  assert.equal(before.size, 2 * cases.length);
  await machine.run("systemctl stop nodelet");
  await machine.until("there is no lock", `! ${lockIsHeld}`);
  assert.deepEqual(await agent.tasks(), before);
  // It is not to come back with the machine, so that what the API server has by then was said before.
  await machine.run("systemctl start nodelet && systemctl --quiet disable nodelet");
  await machine.until("the lock is held again", lockIsHeld);
  await agent.untilReady(cases.map(shownName));
  assert.deepEqual(await agent.tasks(), before);
});

test("the machine turns off when the API server knows how every pod ended, each after its time", async () => {
  await machine.reboot();
  const pods = await api.pods();
  const said = "Pod was terminated in response to imminent node shutdown.";
  for (const each of cases) {
    const { phase, reason, message, conditions, containerStatuses } = pods.get(shownName(each))?.status ?? {};
    const endedWell = each.manner !== "stubborn" && each.isStatic !== true;
    const told = endedWell ? ["Succeeded", undefined, undefined] : ["Failed", "Terminated", said];
    assert.deepEqual([phase, reason, message], told, each.name);
    const target = conditions?.find(({ type }) => type === "DisruptionTarget");
    assert.deepEqual(
      [target?.status, target?.reason, target?.message],
      ["True", "TerminationByKubelet", said],
      each.name,
    );
    const end = containerStatuses?.[0]?.state?.terminated;
    assert.equal(end?.exitCode, each.manner === "stubborn" ? 137 : 0, `${each.name}: ${JSON.stringify(end)}`);
  }
  const [node] = await api.list<Node>("/api/v1/nodes");
  const ready = node?.status?.conditions?.find(({ type }) => type === "Ready");
  assert.deepEqual([ready?.status, ready?.message], ["False", "node is shutting down"]);
  const events = await api.list<Event>("/api/v1/namespaces/default/events");
  assert.ok(events.some(({ message }) => message === "Shutdown manager detected shutdown event"));
  await checkTimes();
});

/** Only what is certain on a machine of any speed: who came after whom, and who had at least how long. */
async function checkTimes(): Promise<void> {
  const read = async (what: string): Promise<ReadonlyMap<string, readonly number[]>> => {
    const lines = await machine.run(`cd ${notes} && grep -H . *.${what} || true`);
    const found = new Map<string, number[]>();
    for (const line of lines.split("\n")) {
      const [file = "", text = ""] = line.split(":");
      const name = file.replace(`.${what}`, "");
      found.set(name, [...(found.get(name) ?? []), Number(text)]);
    }
    return found;
  };
  const [terms, lives, hooks] = [await read("term"), await read("alive"), await read("hook")];
  const first = (group: number): number =>
    Math.min(...cases.filter((each) => each.group === group).flatMap(({ name }) => terms.get(name)?.[0] ?? []));
  for (const { name, group, manner, graceSeconds, hook } of cases) {
    const asked = terms.get(name)?.[0] ?? assert.fail(`${name} was not asked to end`);
    const lastLife = lives.get(name)?.at(-1) ?? asked;
    if (hook) assert.ok((hooks.get(name)?.[0] ?? Number.POSITIVE_INFINITY) <= asked, `${name}: its hook came first`);
    // It writes once a second at the most, and hears of its end when it comes to it.
    const owedSeconds = Math.min(graceSeconds, groups[group]?.seconds ?? 0) * 0.6 - 3;
    if (manner === "stubborn") {
      assert.ok(lastLife - asked >= owedSeconds, `${name} had ${lastLife - asked} s of ${owedSeconds}`);
    }
    if (group + 1 < groups.length) {
      const next = first(group + 1);
      assert.ok(asked <= next, `${name} was asked at ${asked}, the next group at ${next}`);
    }
  }
}

test("after the boot static pods run once more, and pods of the API do not", async () => {
  await machine.run("systemctl --quiet enable nodelet && systemctl start nodelet");
  const startsOfAll = `cat ${statics.map(({ name }) => `${notes}/${name}.starts`).join(" ")} | wc -l`;
  await machine.until("all static pods have started again", `[ $(${startsOfAll}) -ge ${2 * statics.length} ]`);
  const ready = `node -e '
    const names = ${JSON.stringify(statics.map(shownName))};
    const pods = JSON.parse(require("fs").readFileSync(0)).items;
    const isReady = (name) => pods.find((pod) => pod.metadata.name === name)?.status.conditions.some((each) => each.type === "Ready" && each.status === "True");
    process.exit(names.every(isReady) ? 0 : 1)'`;
  const ask = "curl -sf --max-time 60 --unix-socket /var/lib/kubelet/nodelet.sock http://agent/pods";
  await machine.until("all static pods are ready", `${ask} | ${ready}`);
  await machine.run("sleep 20");
  for (const each of cases) {
    const starts = (await machine.run(`cat ${notes}/${each.name}.starts`)).split("\n").length;
    assert.equal(starts, each.isStatic === true ? 2 : 1, each.name);
  }
  const pods = await agent.pods();
  for (const each of statics) {
    const status = pods.get(shownName(each))?.status;
    const [container] = status?.containerStatuses ?? [];
    assert.deepEqual([status?.phase, status?.reason, container?.restartCount], ["Running", undefined, 1], each.name);
    const end = container?.lastState?.terminated;
    assert.equal(end?.exitCode, each.manner === "stubborn" ? 137 : 0, `${each.name}: ${JSON.stringify(end)}`);
    assert.ok(!status?.conditions?.some(({ type }) => type === "DisruptionTarget"), each.name);
  }
  await machine.until("the lock is held", lockIsHeld);
  const metrics = await machine.run("curl -sf http://127.0.0.1:10255/metrics | grep ^kubelet_graceful_shutdown");
  const [end, start] = metrics
    .split("\n")
    .sort()
    .map((line) => Number(line.split(" ")[1]));
  assert.ok(start !== undefined && end !== undefined && start > 0 && end >= start, metrics);
});
