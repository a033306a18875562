import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { FakeCgroup2 } from "../../../test/support/fake-cgroup2.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { type CgroupLayout, readCgroupLayout } from "../../connections/host/index.ts";
import { silentLogger, systemClock } from "../../ground/base/index.ts";
import { kernelCgroupFiles } from "./cgroup-files.ts";
import { CgroupTree } from "./cgroup-tree.ts";
import { type HostProcesses, hostProcesses, type SystemCgroupSettings, SystemCgroups } from "./system-cgroups.ts";

const mountPoint = "/sys/fs/cgroup";
const controllers = ["cpu", "memory", "cpuset", "pids"];

/** Processes of a made-up machine with cgroup v2: who is where, and who can't be moved. */
class MadeUpProcesses extends FakeCgroup2 implements HostProcesses {
  readonly own = 50;
  readonly at = new Map<number, string>();
  readonly kernelThreads = new Set<number>();
  readonly gone = new Set<number>();
  shared = true;
  /** Said by the kernel whoever is moved. */
  refusal: string | undefined;
  moves = 0;

  override async read(path: string): Promise<string> {
    if (!path.endsWith("/cgroup.procs")) return await super.read(path);
    const directory = path.slice(0, -"/cgroup.procs".length);
    return [...this.at].flatMap(([pid, at]) => (at === directory ? [`${pid}\n`] : [])).join("");
  }

  override async write(path: string, text: string): Promise<void> {
    if (!path.endsWith("/cgroup.procs")) return await super.write(path, text);
    this.moves++;
    const code = this.refusal ?? (this.gone.has(Number(text)) ? "ESRCH" : undefined);
    if (code !== undefined) throw Object.assign(new Error(`${code}: ${text}`), { code });
    assert.ok(Number(text) > 0, "zero would be whoever writes it");
    this.at.set(Number(text), path.slice(0, -"/cgroup.procs".length));
  }

  isKernelThread = async (pid: number): Promise<boolean> => this.kernelThreads.has(pid);
  areShared = async (): Promise<boolean> => this.shared;
}

function madeUp(settings: SystemCgroupSettings) {
  const machine = new MadeUpProcesses(mountPoint, controllers);
  const clock = new FakeClock();
  const errors: string[] = [];
  const log = { ...silentLogger, error: (_: string, error: unknown) => void errors.push(String(error)) };
  const tree = new CgroupTree({ version: 2, mountPoint, controllers }, machine, clock);
  return {
    machine,
    errors,
    kept: new SystemCgroups(settings, { tree, files: machine, processes: machine, clock, log }),
  };
}

test("the agent is moved to its cgroup, and those that are in none to theirs", async () => {
  const { machine, kept } = madeUp({ agent: "/node/kubelet", strays: "system" });
  for (const pid of [0, 1, 2, 50, 60]) machine.at.set(pid, mountPoint);
  machine.kernelThreads.add(2);
  machine.at.set(70, `${mountPoint}/user.slice`);
  await kept.ensure();
  assert.deepEqual(Object.fromEntries(machine.at), {
    0: mountPoint,
    1: mountPoint,
    2: mountPoint,
    50: `${mountPoint}/node/kubelet`,
    60: `${mountPoint}/system`,
    70: `${mountPoint}/user.slice`,
  });
});

test("where nothing is asked for, nothing is moved", async () => {
  const { machine, kept } = madeUp({ agent: "", strays: "" });
  machine.at.set(50, mountPoint);
  await kept.ensure();
  await kept.run(new AbortController().signal);
  assert.equal(machine.moves, 0);
});

test("inside a container nobody is moved", async () => {
  const { machine, kept } = madeUp({ agent: "/kubelet", strays: "/system" });
  machine.at.set(50, mountPoint).set(60, mountPoint);
  machine.shared = false;
  await kept.ensure();
  assert.equal(machine.moves, 0);
});

test("a process that ends meanwhile is no failure, and one that can't be moved is said once", async () => {
  const { machine, errors, kept } = madeUp({ agent: "", strays: "/system" });
  machine.at.set(60, mountPoint).set(61, mountPoint);
  machine.gone.add(60);
  await kept.ensure();
  assert.equal(machine.at.get(61), `${mountPoint}/system`);
  assert.deepEqual(errors, []);
  machine.at.set(62, mountPoint);
  machine.refusal = "EBUSY";
  machine.moves = 0;
  await kept.ensure();
  await kept.ensure();
  assert.deepEqual(errors, ["Error: process 60: EBUSY: 60"]);
  assert.equal(machine.moves, 2 * 11 * 2, "no more than eleven rounds, each time");
});

const layout = await readCgroupLayout();
const skip = layout.version === 1 && process.getuid?.() === 0 ? false : "needs root on a machine with cgroup v1";

test("on this machine's kernel, in cgroups that stand for the top of every tree", { skip }, async () => {
  const name = `nodelet-test-${randomBytes(4).toString("hex")}`;
  const tops = new Map(
    [...(layout as CgroupLayout & { version: 1 }).mountPoints].map(([controller, at]) => [controller, join(at, name)]),
  );
  const places = [...new Set(tops.values())];
  const children: ChildProcess[] = [];
  try {
    for (const top of places) await mkdir(top, { recursive: true });
    const cpuset = tops.get("cpuset");
    for (const file of cpuset === undefined ? [] : ["cpuset.cpus", "cpuset.mems"]) {
      await writeFile(join(cpuset ?? "", file), await readFile(join(cpuset ?? "", "..", file), "utf8"));
    }
    for (let count = 0; count < 3; count++) {
      const child = spawn("sleep", ["60"], { stdio: "ignore" });
      await once(child, "spawn");
      children.push(child);
      for (const top of places) await writeFile(join(top, "cgroup.procs"), `${child.pid}`);
    }
    const [agent] = children;
    const tree = new CgroupTree(
      { version: 1, mountPoints: tops, unifiedMountPoint: undefined },
      kernelCgroupFiles,
      systemClock,
    );
    // Who runs tests may not look at process 1.
    const processes = { ...hostProcesses, own: agent?.pid ?? 0, areShared: async () => true };
    const ports = { tree, files: kernelCgroupFiles, processes, clock: systemClock, log: silentLogger };
    const kept = new SystemCgroups({ agent: "/kubelet", strays: "/system" }, ports);
    await kept.ensure();
    const inside = async (directory: string): Promise<readonly number[]> =>
      (await readFile(join(directory, "cgroup.procs"), "utf8")).split("\n").filter(Boolean).map(Number).sort();
    const others = children.slice(1).map(({ pid }) => pid ?? 0);
    for (const top of places) {
      assert.deepEqual(await inside(top), [], top);
      assert.deepEqual(await inside(join(top, "kubelet")), [agent?.pid], top);
      assert.deepEqual(await inside(join(top, "system")), others.sort(), top);
    }
  } finally {
    for (const child of children) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
    for (const top of places) {
      for (const directory of [join(top, "kubelet"), join(top, "system"), top]) await rmdir(directory).catch(() => {});
    }
  }
});
