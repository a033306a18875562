// Slices of a systemd that owns the control files: what it was not told it takes back.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { FakeCgroup2 } from "../../../test/support/fake-cgroup2.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { FakeSystemd, type FakeSystemdCgroups } from "../../../test/support/fake-systemd.ts";
import { SystemdManager } from "../../connections/host/systemd/manager.ts";
import { silentLogger } from "../../ground/base/index.ts";
import type { CgroupNaming, IdentifiedPod, PodUid, ResourceRequirements } from "../../ground/model/index.ts";
import { CgroupTree } from "./cgroup-tree.ts";
import type { PodValueSettings } from "./pod-cgroup-limits.ts";
import { PodCgroups } from "./pod-cgroups.ts";
import { SliceTree } from "./slice-tree.ts";

const mountPoint = "/sys/fs/cgroup";
const controllers = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"];
const settings: PodValueSettings = {
  cpuCfsQuota: true,
  cpuPeriodUs: 100_000,
  podPidsLimit: 1024,
  memoryQos: false,
  hugePageSizes: [2n << 20n],
};
const signal = new AbortController().signal;
const systemdNaming: CgroupNaming = { driver: "systemd", root: "", perQos: true };

function pod(uid: string, resources: ResourceRequirements = {}): IdentifiedPod {
  return { metadata: { name: uid, namespace: "n", uid }, spec: { containers: [{ name: "c", resources }] } };
}
const burstable = pod("b-1", { requests: { cpu: "500m", memory: "64Mi" }, limits: { cpu: "333m", memory: "64Mi" } });
const guaranteed = pod("g-1", { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } });
const bestEffort = pod("e-1");

/** systemd's part in the tree: its word for each file, and what it puts there without one. */
function ownedBySystemd(kernel: FakeCgroup2): FakeSystemdCgroups {
  const limit = (value: unknown): string => (value === undefined || value === 2n ** 64n - 1n ? "max" : String(value));
  const directoryOf = (unit: string): string => {
    const levels = unit.replace(/\.slice$/, "").split("-");
    return levels.map((_, depth) => `/${levels.slice(0, depth + 1).join("-")}.slice`).join("");
  };
  const files: Readonly<Record<string, (get: (name: string) => unknown) => string>> = {
    "memory.max": (get) => limit(get("MemoryMax")),
    "pids.max": (get) => limit(get("TasksMax")),
    "cpu.weight": (get) => String(get("CPUWeight") ?? 100),
    "cpu.max": (get) => {
      const perSecond = get("CPUQuotaPerSecUSec");
      const period = BigInt(String(get("CPUQuotaPeriodUSec") ?? 100_000));
      if (perSecond === undefined || perSecond === 2n ** 64n - 1n) return `max ${period}`;
      return `${((perSecond as bigint) * period) / 1_000_000n} ${period}`;
    },
  };
  const put = async (unit: string, properties: ReadonlyMap<string, unknown>): Promise<void> => {
    for (const [file, textOf] of Object.entries(files)) {
      await kernel.write(
        join(mountPoint, directoryOf(unit), file),
        textOf((name) => properties.get(name)),
      );
    }
  };
  return {
    async realise(unit, properties) {
      let path = mountPoint;
      for (const level of directoryOf(unit).split("/").slice(1)) {
        await kernel.write(`${path}/cgroup.subtree_control`, "+cpu +memory +pids");
        path += `/${level}`;
        await kernel.makeDirectory(path);
      }
      await put(unit, properties);
    },
    async apply(unit, properties) {
      await put(unit, new Map([...(all.get(unit) ?? []), ...properties]));
    },
    async remove(unit) {
      await kernel.removeDirectory(join(mountPoint, directoryOf(unit))).catch(() => undefined);
    },
  };
}
/** What each unit has been told, for `apply`. */
let all: ReadonlyMap<string, ReadonlyMap<string, unknown>> = new Map();

interface Node {
  readonly kernel: FakeCgroup2;
  readonly systemd: FakeSystemd;
  readonly active: IdentifiedPod[];
  readonly known: { all: boolean };
  readonly errors: string[];
  readonly start: (driver?: "systemd" | "cgroupfs") => PodCgroups;
}

async function onNode(run: (node: Node) => Promise<void>): Promise<void> {
  const kernel = new FakeCgroup2(mountPoint, controllers);
  await using systemd = await FakeSystemd.start(ownedBySystemd(kernel));
  all = systemd.units;
  const clock = new FakeClock();
  const manager = new SystemdManager([systemd.socket], { clock, log: silentLogger });
  const active: IdentifiedPod[] = [];
  const known = { all: true };
  const errors: string[] = [];
  const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
  const start = (driver: "systemd" | "cgroupfs" = "systemd"): PodCgroups => {
    const files = new CgroupTree({ version: 2, mountPoint, controllers }, kernel, clock);
    return new PodCgroups({ ...systemdNaming, driver }, settings, {
      tree: driver === "systemd" ? new SliceTree(files, manager) : files,
      log,
      activePods: () => active,
      arePodsKnown: () => known.all,
      hasExclusiveCpus: () => false,
      isSettled: () => true,
    });
  };
  try {
    await run({ kernel, systemd, active, known, errors, start });
  } finally {
    manager.close();
  }
}

const slices = ["kubepods.slice", "kubepods-burstable.slice", "kubepods-burstable-podb_1.slice"];

/** The files of both drivers, as `kind/file: text` for each kind of cgroup; systemd also writes what is as it was. */
function byKind(kernel: FakeCgroup2): readonly string[] {
  const defaults = ["memory.max: max", "cpu.max: max 100000", "pids.max: max", "cpu.weight: 100"];
  return kernel
    .report()
    .filter((line) => !defaults.some((one) => line.endsWith(`/${one}`)))
    .map((line) =>
      line.replace(
        /^\/(.*)\/([^/]+: .*)$/,
        (_, path: string, rest: string) =>
          `${
            path
              .split("/")
              .at(-1)
              ?.replace(/\.slice$/, "")
              .replaceAll("_", "-")
              .split("-")
              .slice(1)
              .join("-") || "kubepods"
          }/${rest}`,
      ),
    )
    .map((line) => line.replace(/^(burstable|besteffort)-(?=pod)/, ""))
    .sort();
}

test("every file has the value that the cgroupfs driver writes", async () => {
  const reports: (readonly string[])[] = [];
  for (const driver of ["systemd", "cgroupfs"] as const) {
    await onNode(async ({ kernel, active, errors, start }) => {
      const cgroups = start(driver);
      await cgroups.createTiers();
      active.push(burstable, guaranteed, bestEffort);
      for (const one of active) await cgroups.ensure(one);
      assert.deepEqual(errors, []);
      reports.push(
        driver === "systemd"
          ? byKind(kernel)
          : kernel
              .report()
              .map((line) => line.replace(/^.*\/([^/]+)\/([^/]+: .*)$/, "$1/$2"))
              .sort(),
      );
    });
  }
  assert.equal(
    reports[0]?.some((line) => line === "podb-1/cpu.max: 33300 100000"),
    true,
    reports[0]?.join("\n"),
  );
  assert.deepEqual(reports[0], reports[1]);
});

test("limits outlive the first container, and a reload costs at most until the next healing", async () => {
  await onNode(async ({ kernel, systemd, active, start }) => {
    const cgroups = start();
    await cgroups.createTiers();
    active.push(burstable);
    await cgroups.ensure(burstable);
    const right = kernel.report();
    const without = (file: string): readonly string[] => kernel.report().filter((line) => !line.includes(file));
    await systemd.startScope(...slices);
    // systemd keeps a quota in whole percents, rounded up.
    assert.deepEqual(
      without("podb_1.slice/cpu.max"),
      right.filter((line) => !line.includes("podb_1.slice/cpu.max")),
    );
    await cgroups.heal();
    assert.deepEqual(kernel.report(), right);
    await systemd.reload();
    assert.deepEqual(
      without("podb_1.slice/cpu.max"),
      right.filter((line) => !line.includes("podb_1.slice/cpu.max")),
    );
    await cgroups.heal();
    assert.deepEqual(kernel.report(), right);
    const calls = systemd.calls.length;
    await cgroups.heal();
    assert.equal(systemd.calls.length, calls);
  });
});

test("what an agent that wrote files only has left is told to systemd by the next one, pods that run included", async () => {
  await onNode(async ({ kernel, systemd, active, start }) => {
    await systemd.startScope(...slices);
    const cgroups = start();
    active.push(burstable);
    await cgroups.createTiers();
    await cgroups.heal();
    const right = kernel.report();
    assert.equal(systemd.units.get("kubepods-burstable-podb_1.slice")?.get("MemoryMax"), 67_108_864n);
    await systemd.reload();
    await cgroups.heal();
    assert.deepEqual(kernel.report(), right);
  });
});

test("a restart: tiers keep their weight until the pods are known", async () => {
  await onNode(async ({ kernel, systemd, active, known, start }) => {
    const weight = async (): Promise<string> =>
      (await kernel.read(`${mountPoint}/kubepods.slice/kubepods-burstable.slice/cpu.weight`)).trim();
    const first = start();
    await first.createTiers();
    active.push(burstable);
    await first.ensure(burstable);
    assert.equal(await weight(), "20");
    active.length = 0;
    known.all = false;
    const second = start();
    await second.createTiers();
    await second.heal();
    assert.equal(await weight(), "20");
    assert.equal(systemd.units.get("kubepods-burstable.slice")?.get("CPUWeight"), 20n);
    known.all = true;
    await second.updateTiers();
    assert.equal(await weight(), "1");
    assert.equal(systemd.units.get("kubepods-burstable.slice")?.get("CPUWeight"), 1n);
  });
});

test("a pod that is gone leaves no unit and no directory, and a reload brings none back", async () => {
  await onNode(async ({ kernel, systemd, start }) => {
    const cgroups = start();
    await cgroups.createTiers();
    await cgroups.ensure(burstable);
    await systemd.startScope(...slices);
    // By an agent that has not seen the pod before, too.
    await start().remove("b-1" as PodUid, signal);
    assert.deepEqual([...systemd.units.keys()].sort(), [
      "kubepods-besteffort.slice",
      "kubepods-burstable.slice",
      "kubepods.slice",
    ]);
    await systemd.reload();
    assert.deepEqual(await kernel.directories(`${mountPoint}/kubepods.slice/kubepods-burstable.slice`), []);
  });
});

test("a slice with a process in it is not stopped: systemd would kill the process", async () => {
  await onNode(async ({ kernel, systemd, start }) => {
    const cgroups = start();
    await cgroups.createTiers();
    await cgroups.ensure(burstable);
    kernel.setProcesses("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb_1.slice", 1);
    const abort = new AbortController();
    const removal = assert.rejects(cgroups.remove("b-1" as PodUid, abort.signal));
    await new Promise<void>((resolve) => setImmediate(resolve));
    abort.abort();
    await removal;
    assert.equal(
      systemd.calls.some((call) => call.startsWith("StopUnit")),
      false,
    );
  });
});

test("systemd refuses one pod: that pod fails with systemd's words, the others do not, and a later try works", async () => {
  await onNode(async ({ systemd, start }) => {
    const cgroups = start();
    await cgroups.createTiers();
    systemd.instead.set("StartTransientUnit", (connection, call) =>
      connection.refuse(call, "org.freedesktop.DBus.Error.InvalidArgs", "MemoryMax= is out of range"),
    );
    await assert.rejects(
      cgroups.ensure(burstable),
      /Cannot create cgroup .*podb_1\.slice: .*MemoryMax= is out of range/,
    );
    systemd.instead.clear();
    await cgroups.ensure(guaranteed);
    await cgroups.ensure(burstable);
    assert.equal(await cgroups.exists(burstable), true);
  });
});

test("a change that systemd refuses is tried again at the next healing", async () => {
  await onNode(async ({ kernel, systemd, active, errors, start }) => {
    const cgroups = start();
    await cgroups.createTiers();
    active.push(burstable);
    await cgroups.ensure(burstable);
    const right = kernel.report();
    const file = `${mountPoint}/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podb_1.slice/memory.max`;
    await kernel.write(file, "max");
    systemd.instead.set("SetUnitProperties", (connection, call) => connection.refuse(call, "a.b.Busy", "not now"));
    await cgroups.heal();
    await cgroups.heal();
    assert.deepEqual(errors, ["Could not heal the limits of the pod"]);
    systemd.instead.clear();
    await cgroups.heal();
    assert.deepEqual(kernel.report(), right);
  });
});
