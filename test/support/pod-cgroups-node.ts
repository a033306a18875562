import assert from "node:assert/strict";
import { silentLogger } from "../../src/ground/base/index.ts";
import type { CgroupNaming, IdentifiedPod, ResourceRequirements } from "../../src/ground/model/index.ts";
import { CgroupTree } from "../../src/pod/resources/cgroup-tree.ts";
import type { PodValueSettings } from "../../src/pod/resources/pod-cgroup-limits.ts";
import { PodCgroups } from "../../src/pod/resources/pod-cgroups.ts";
import { FakeCgroup2 } from "./fake-cgroup2.ts";
import { FakeClock } from "./fake-clock.ts";

export const mountPoint = "/sys/fs/cgroup";
export const controllers = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids", "rdma"];
export const settings: PodValueSettings = {
  cpuCfsQuota: true,
  cpuPeriodUs: 100_000,
  podPidsLimit: 1024,
  memoryQos: true,
  hugePageSizes: [2n << 20n],
};
export const signal = new AbortController().signal;
export const full = { cpu: "1", memory: "1Gi" };

export function pod(uid: string, resources: ResourceRequirements = {}): IdentifiedPod {
  return { metadata: { name: uid, namespace: "n", uid }, spec: { containers: [{ name: "c", resources }] } };
}
export const guaranteed = pod("g-1", { requests: full, limits: full });
export const burstable = pod("b-1", { requests: { cpu: "500m", memory: "64Mi" } });
export const bestEffort = pod("e-1");

export interface Node {
  readonly kernel: FakeCgroup2;
  readonly tree: CgroupTree;
  readonly clock: FakeClock;
  readonly errors: string[];
  readonly active: IdentifiedPod[];
  /** Whether `active` is all there is. */
  readonly known: { all: boolean };
  /** Whether containers have what they were promised. */
  readonly given: { all: boolean };
  /** A new agent on the same node. */
  readonly start: () => PodCgroups;
}

export function node(naming: Partial<CgroupNaming> = {}, more: Partial<PodValueSettings> = {}): Node {
  const kernel = new FakeCgroup2(mountPoint, controllers);
  const clock = new FakeClock();
  const tree = new CgroupTree({ version: 2, mountPoint, controllers }, kernel, clock);
  const errors: string[] = [];
  const active: IdentifiedPod[] = [];
  const known = { all: true };
  const given = { all: true };
  const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
  const start = (): PodCgroups =>
    new PodCgroups(
      { driver: "cgroupfs", root: "", perQos: true, ...naming },
      { ...settings, ...more },
      {
        tree,
        log,
        activePods: () => active,
        arePodsKnown: () => known.all,
        hasExclusiveCpus: () => false,
        isSettled: () => given.all,
      },
    );
  return { kernel, tree, clock, errors, active, known, given, start };
}

export const linesOf = (kernel: FakeCgroup2, path: string): readonly string[] =>
  kernel
    .report()
    .filter(
      (line) =>
        line.startsWith(`${path}/`) &&
        !line
          .slice(path.length + 1)
          .split(":")[0]
          ?.includes("/"),
    )
    .map((line) => line.slice(path.length + 1));

export function assertHas(lines: readonly string[], line: string): void {
  assert.deepEqual(
    lines.filter((one) => one === line),
    [line],
    `lines are ${lines.join("; ")}`,
  );
}
