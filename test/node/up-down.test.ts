// What a new user does, for real: bring the examples up, look at them, survive crashes, take everything down.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { downCommand } from "../../src/beside/cli/down.ts";
import { LocalClient } from "../../src/beside/cli/local-client.ts";
import { layoutOf, type MachineLayout, processOf, signalProcess } from "../../src/beside/cli/machine/index.ts";
import { upCommand } from "../../src/beside/cli/up.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { recordIo } from "../support/command-io.ts";
import { claimSlot, releaseSlot } from "../support/slots.ts";
import { leftSince, takeTraces } from "../support/traces.ts";
import { soon } from "../support/until.ts";

const home = fileURLToPath(new URL("../..", import.meta.url));
const forever = new AbortController().signal;

async function withMachine(work: (layout: MachineLayout) => Promise<void>): Promise<void> {
  const before = await takeTraces();
  const slot = await claimSlot();
  try {
    await work(layoutOf(slot.machineDir));
  } finally {
    await releaseSlot(slot);
  }
  assert.deepEqual(await leftSince(before), []);
}

async function up(layout: MachineLayout): Promise<ReadonlyMap<string, Pod>> {
  const { io, stdout, stderr } = recordIo(home);
  assert.equal(await upCommand(["--detach", "--state-dir", layout.stateDir], io), 0, stdout() + stderr());
  assert.match(stderr(), /the dashboard is at http:\/\/127\.0\.0\.1:\d+\/dashboard\/#token=[\w-]{43}/);
  const pods = await new LocalClient(`${layout.agentRoot}/nodelet.sock`).pods(forever);
  // A static pod's name ends in the name of the node.
  return new Map(pods.map((pod) => [pod.metadata?.name?.split("-")[0] ?? "", pod]));
}

async function down(layout: MachineLayout): Promise<void> {
  const { io, stderr } = recordIo(home);
  assert.equal(await downCommand(["--state-dir", layout.stateDir], io), 0, stderr());
}

function containerIds(pods: ReadonlyMap<string, Pod>): readonly (string | undefined)[] {
  return [...pods.values()].flatMap(({ status }) => status?.containerStatuses?.map((one) => one.containerID)).sort();
}

test("the examples come up, answer, and go without a trace", () =>
  withMachine(async (layout) => {
    const before = await takeTraces();
    const pods = await up(layout);
    assert.deepEqual([...pods.keys()].sort(), ["clock", "greeter", "job", "web"]);
    const { web, clock, job } = Object.fromEntries(pods);
    const ip = web?.status?.podIP ?? "";
    assert.equal(await get(`http://${ip}/`), `Hello from ${web?.metadata?.name} at ${ip}\n`);
    assert.equal(await get("http://127.0.0.1:18080/"), `Hello from ${web?.metadata?.name} at ${ip}\n`);
    assert.match(await get(`http://${clock?.status?.podIP}/`), /\d\d:\d\d:\d\d/);
    assert.equal(job?.status?.phase, "Succeeded");
    assert.equal(job?.status?.containerStatuses?.[0]?.restartCount, 1);
    await down(layout);
    assert.deepEqual(await leftSince(before), []);
  }));

test("pods outlive the agent and containerd: up again finds them running", () =>
  withMachine(async (layout) => {
    const first = await up(layout);
    const page = `http://${first.get("web")?.status?.podIP}/`;
    for (const role of ["agent", "containerd"] as const) {
      const victim = await processOf(layout, role);
      assert.ok(victim);
      await signalProcess(victim, "SIGKILL");
      assert.match(await get(page), /Hello/);
    }
    const second = await up(layout);
    assert.deepEqual(containerIds(second), containerIds(first));
    assert.match(await get(page), /Hello/);
  }));

test("npm start shows the pods until Ctrl-C, and they go on", () =>
  withMachine(async (layout) => {
    const child = spawn("npm", ["start", "--silent", "--", "--state-dir", layout.stateDir], {
      cwd: home,
      detached: true,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
    const exited = once(child, "exit");
    const giveUp = AbortSignal.timeout(120_000);
    while (!/^web-.*: Running, 1\/1 ready, ip /m.test(output)) await systemClock.sleep(100, giveUp);
    const address = /^web-.*: Running, 1\/1 ready, ip (\S+)/m.exec(output)?.[1];
    // A terminal sends Ctrl-C to the whole group.
    process.kill(-(child.pid ?? 0), "SIGINT");
    await exited;
    assert.match(output, /The pods go on running\. "npm run down -- --state-dir/);
    assert.equal(await processOf(layout, "agent"), undefined);
    assert.match(await get(`http://${address}/`), /Hello/);
  }));

async function get(url: string): Promise<string> {
  const response = await fetch(url, { signal: soon() });
  assert.equal(response.status, 200, url);
  return await response.text();
}
