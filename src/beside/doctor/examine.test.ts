import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { until } from "../../../test/support/until.ts";
import { never, systemClock } from "../../ground/base/index.ts";
import { type Examination, examine } from "./examine.ts";
import type { DoctorReport } from "./finding.ts";
import { type Gatherers, gather } from "./gathering.ts";
import { unknownWords } from "./groups.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-examine-"));
after(() => rmSync(directory, { recursive: true, force: true }));

/** A machine of a few files. */
function machine(name: string, files: Readonly<Record<string, string>>): string {
  const root = join(directory, name);
  const usual = {
    "/proc/self/mountinfo": "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:9 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n",
    "/sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory hugetlb pids\n",
    "/proc/sys/kernel/osrelease": "6.1.0\n",
    "/proc/sys/kernel/hostname": "node-1\n",
    "/proc/stat": "btime 1700000000\n",
    "/proc/swaps": "Filename Type Size Used Priority\n",
    "/etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "/etc/hosts": "10.0.0.7 node-1\n",
  };
  for (const [path, text] of Object.entries({ ...usual, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const base = { clock: systemClock, env: {}, cwd: "/", uid: 0 } as const;

function look(examination: Partial<Examination>): Promise<DoctorReport> {
  return examine({ ...base, socket: join(directory, "none.sock"), ...examination }, never);
}

function stateOf(report: DoctorReport, id: string): string | undefined {
  return report.findings.find((finding) => finding.id === id)?.state;
}

test("without an agent the flags that are given are examined; exact words choose the checks", async () => {
  const report = await look({
    root: machine("flags", {}),
    flags: ["--anonymous-auth=false"],
    only: ["4.2.1", "cis-4.2.2", "ground"],
  });
  assert.equal(report.apiVersion, "nodelet.dev/v1");
  assert.equal(report.agent.state, "absent");
  assert.equal(stateOf(report, "4.2.1"), "pass");
  assert.equal(stateOf(report, "4.2.2"), "fail");
  assert.equal(stateOf(report, "ground.kernel"), "pass");
  assert.equal(stateOf(report, "ground.cgroups"), "pass");
  assert.deepEqual([...new Set(report.findings.map(({ group }) => group))], ["cis settings", "ground"]);
  assert.equal(report.summary.fail, report.findings.filter(({ state }) => state === "fail").length);
});

test("a topic without some of its checks", async () => {
  const report = await look({ root: machine("skip", {}), only: ["cis"], skip: ["4.2.1", "cis-files"] });
  assert.deepEqual(
    report.findings.find(({ id }) => id === "4.2.1" || id === "4.1.1"),
    undefined,
  );
  assert.equal(stateOf(report, "4.2.13"), "fail");
});

test("words that mean nothing are told", () => {
  assert.deepEqual(unknownWords(["cis", "4.2.1", "kernel-log", "api.tls", "cfs", ""]), ["cfs", ""]);
});

test("a kubelet that runs is examined by its command line", async () => {
  const root = machine("kubelet", {
    "/proc/77/comm": "kubelet\n",
    "/proc/77/cmdline": "/usr/bin/kubelet\0--anonymous-auth=false\0--root-dir=/var/lib/kubelet\0",
  });
  const report = await look({ root, only: ["4.2.1", "agents.one"] });
  assert.match(report.subject, /^kubelet with pid 77/);
  assert.equal(stateOf(report, "4.2.1"), "pass");
  assert.equal(stateOf(report, "agents.one"), "pass");
});

test("a configuration that is refused fails once, and leaves what needs it unknown", async () => {
  const report = await look({
    root: machine("refused", {}),
    flags: ["--max-pods=x"],
    only: ["config.valid", "4.2.1", "ground.kernel"],
  });
  assert.equal(stateOf(report, "config.valid"), "fail");
  assert.equal(stateOf(report, "4.2.1"), "unknown");
  assert.equal(stateOf(report, "ground.kernel"), "pass");
});

test("no /boot, no /proc/config.gz: what can be seen counts, the rest is unknown", async () => {
  const root = machine("no-boot", {
    "/proc/filesystems": "nodev\toverlay\n",
    "/sys/module/bridge/refcnt": "1",
    "/lib/modules/6.1.0/modules.dep": "kernel/drivers/net/veth.ko:\n",
  });
  const report = await look({ root, only: ["kernel.overlay", "kernel.bridge", "kernel.veth", "kernel.xt_mark"] });
  assert.deepEqual(
    report.findings.map(({ id, state }) => `${id} ${state}`),
    ["kernel.overlay pass", "kernel.veth pass", "kernel.bridge pass", "kernel.xt_mark unknown"],
  );
});

test("options of the kernel that are missing", async () => {
  const root = machine("options", {
    "/boot/config-6.1.0": "CONFIG_VETH=m\nCONFIG_BRIDGE=y\n",
    "/lib/modules/6.1.0/modules.dep": "x/dummy.ko:\n",
  });
  const report = await look({ root, only: ["kernel.veth", "kernel.bridge", "kernel.keys"] });
  assert.deepEqual(
    report.findings.map(({ id, state }) => `${id} ${state}`),
    ["kernel.veth fail", "kernel.bridge pass", "kernel.keys fail"],
  );
});

async function serveAt(socket: string, server: Server): Promise<AsyncDisposable> {
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  return {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test("an agent that hangs: each question has its second, and the rest of the doctor goes on", async () => {
  const socket = join(directory, "hung.sock");
  let asked = 0;
  await using _ = await serveAt(
    socket,
    createServer(() => asked++),
  );
  const clock = new FakeClock(Date.UTC(2026, 10, 17));
  const looking = examine(
    { ...base, clock, socket, root: machine("hung", {}), only: ["agent", "ground.kernel"] },
    never,
  );
  await until("the agent was asked", () => asked >= 3);
  await clock.advance(1_000);
  const report = await looking;
  assert.equal(report.agent.state, "silent");
  assert.equal(stateOf(report, "agent.answers"), "fail");
  assert.equal(stateOf(report, "agent.health"), "unknown");
  assert.equal(stateOf(report, "ground.kernel"), "pass");
});

for (const { load, answersAfterMs } of [
  { load: "0.10", answersAfterMs: 1_000 },
  { load: "1000.00", answersAfterMs: 5_000 },
]) {
  test(`on a machine with a load of ${load} each question has ${answersAfterMs / 1000} s`, async () => {
    const socket = join(directory, `load-${load}.sock`);
    let asked = 0;
    await using _ = await serveAt(
      socket,
      createServer(() => asked++),
    );
    const clock = new FakeClock(Date.UTC(2026, 10, 17));
    const root = machine(`load-${load}`, { "/proc/loadavg": `${load} 0.10 0.10 1/100 4711\n` });
    let isOver = false;
    const looking = examine({ ...base, clock, socket, root, only: ["agent.answers"] }, never).finally(() => {
      isOver = true;
    });
    await until("the agent was asked", () => asked >= 3);
    await clock.advance(answersAfterMs - 1);
    assert.equal(isOver, false);
    await clock.advance(1);
    const { findings } = await looking;
    assert.match(findings[0]?.seen ?? "", new RegExp(`within ${answersAfterMs / 1000} s`));
  });
}

test("an agent that is older than the command has no such views", async () => {
  const socket = join(directory, "older.sock");
  await using _ = await serveAt(
    socket,
    createServer((_request, response) => response.writeHead(404).end()),
  );
  const report = await look({ socket, root: machine("older", {}), only: ["agent"] });
  assert.equal(report.agent.state, "older");
  assert.equal(stateOf(report, "agent.answers"), "warn");
});

test("an agent that sends more than anybody reads", async () => {
  const socket = join(directory, "endless.sock");
  const endless = createServer((_request, response) => {
    const piece = Buffer.alloc(1024 * 1024, "[");
    const send = (): void => void (response.destroyed || response.write(piece, send));
    send();
  });
  await using _ = await serveAt(socket, endless);
  const report = await look({ socket, root: machine("endless", {}), only: ["agent.answers"], withinMs: 60_000 });
  assert.match(report.findings[0]?.seen ?? "", /longer than|no answer/);
});

test("a piece that hangs takes only what needs it with it", async () => {
  const clock = new FakeClock();
  const hangs = (): Promise<never> => new Promise(() => {});
  const gatherers = {
    ground: async () => "here",
    kernel: hangs,
    time: async (need: (name: "kernel") => Promise<unknown>) => await need("kernel"),
  };
  const gathering = gather(
    gatherers as unknown as Gatherers,
    ["ground", "kernel", "time"],
    { clock, withinMs: 1_800 },
    never,
  );
  await clock.advance(1_800);
  const facts = await gathering;
  assert.deepEqual(facts.ground, { value: "here" });
  for (const fact of [facts.kernel, facts.time]) {
    assert.equal("missing" in fact && fact.missing, "no answer within 1.8 s");
  }
  assert.equal(clock.pendingTimers, 0);
});

test("what others write can't move a cursor", async () => {
  const root = machine("hostile", { "/etc/machine-id": "\u001b[2J\u202egnp.exe\n" });
  const report = await look({ root, only: ["ground.machine-id"] });
  assert.doesNotMatch(JSON.stringify(report), /\\u001b|\u202e/);
  assert.equal(report.findings[0]?.state, "warn");
});
