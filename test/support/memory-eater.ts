import { existsSync, readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { join } from "node:path";
import { resources } from "../../src/connections/kube/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { answerMs, eventually } from "./agent.ts";
import type { ClusterPods } from "./cluster-pods.ts";
import type { TestContainerd } from "./containerd.ts";

const mebibyte = 2 ** 20;
const podsMegabytes = 400;
export const keptMegabytes = 100;
const forever = new AbortController().signal;

/**
 * Configuration by which all pods together may use 400 MiB, of which 100 have to stay free: pressure that a test can make
 * without the machine noticing. Beyond 400 MiB the kernel kills.
 */
export const smallPodMemory = {
  enforceNodeAllocatable: ["pods"],
  kubeReserved: { memory: String(totalmem() - podsMegabytes * mebibyte) },
  evictionHard: { "memory.available": `${keptMegabytes}Mi` },
  evictionPressureTransitionPeriod: "3s",
};

/** Waits until the Node says so. */
export async function untilCondition(cluster: ClusterPods, type: string, status: "True" | "False"): Promise<void> {
  const isSo = async (): Promise<boolean> => {
    const soon = AbortSignal.timeout(answerMs);
    const node = await cluster.admin.get(resources.nodes, { name: "test-node" }, {}, soon);
    return node.status?.conditions?.find((condition) => condition.type === type)?.status === status;
  };
  await eventually(isSo, `the Node has ${type} ${status}`, 60_000);
}

/** Takes memory and never lets go, and does not listen to SIGTERM. */
export function eaterScript(megabytesPerSecond: number): string {
  const chunk = `dd if=/dev/zero bs=1M count=${megabytesPerSecond / 10} 2>/dev/null; usleep 95000`;
  return `trap '' TERM; while :; do ${chunk}; done | tail`;
}

export interface EatingRound {
  /** From the moment that too little was left until nothing of the pod ran any more. */
  readonly crossingToDeadMs: number;
  /** How little was left at that time. */
  readonly leastLeftMegabytes: number;
  readonly oomKills: number;
  readonly pod: Pod;
}

/** Lets a pod eat until it is evicted, and watches the kernel's figures meanwhile. */
export async function letEat(
  cluster: ClusterPods,
  containerd: TestContainerd,
  name: string,
  megabytesPerSecond: number,
): Promise<EatingRound> {
  const kubepods = join("/sys/fs/cgroup/memory", containerd.cgroupRoot, "kubepods");
  const oomKillsBefore = oomKills(kubepods);
  const { metadata } = await cluster.create(name, {
    restartPolicy: "Never",
    containers: [
      { name: "main", image: containerd.images.busybox, command: ["sh", "-c", eaterScript(megabytesPerSecond)] },
    ],
  });
  const podCgroup = join(kubepods, "besteffort", `pod${metadata.uid}`);
  // A busy machine may not let us see the few moments in between: that the pod is over ends the watch as well.
  const isOver = new AbortController();
  const watching = watchKernel(kubepods, podCgroup, isOver.signal);
  try {
    const pod = await cluster.until(name, "it is evicted", ({ status }) => status?.phase === "Failed", giveUpMs);
    isOver.abort();
    return { ...(await watching), oomKills: oomKills(kubepods) - oomKillsBefore, pod };
  } finally {
    isOver.abort();
    await watching;
  }
}

const giveUpMs = 90_000;

/** Resolves when too little memory is left for pods, whether the agent has noticed or not. */
export async function untilPressed({ cgroupRoot }: TestContainerd): Promise<void> {
  const kubepods = join("/sys/fs/cgroup/memory", cgroupRoot, "kubepods");
  const began = systemClock.monotonic();
  while (podsMegabytes * mebibyte - workingSet(kubepods) >= keptMegabytes * mebibyte) {
    if (systemClock.monotonic() - began > giveUpMs) throw new Error("memory did not run short in a minute and a half");
    await systemClock.sleep(5, forever);
  }
}

async function watchKernel(
  kubepods: string,
  pod: string,
  isOver: AbortSignal,
): Promise<Pick<EatingRound, "crossingToDeadMs" | "leastLeftMegabytes">> {
  let crossedAt: number | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (;;) {
    const now = systemClock.monotonic();
    const left = podsMegabytes * mebibyte - workingSet(kubepods);
    least = Math.min(least, left);
    if (left < keptMegabytes * mebibyte) crossedAt ??= now;
    if (isOver.aborted || (crossedAt !== undefined && !runsAnything(pod))) {
      return { crossingToDeadMs: now - (crossedAt ?? now), leastLeftMegabytes: least / mebibyte };
    }
    await systemClock.sleep(10, forever);
  }
}

function workingSet(cgroup: string): number {
  const usage = Number(readFileSync(join(cgroup, "memory.usage_in_bytes"), "utf8"));
  const inactive = /^total_inactive_file (\d+)$/m.exec(readFileSync(join(cgroup, "memory.stat"), "utf8"))?.[1];
  return usage - Number(inactive ?? 0);
}

/** Half of what the pod had is gone: whoever held it is dead. */
function runsAnything(cgroup: string): boolean {
  return existsSync(cgroup) && workingSetIfThere(cgroup) > (podsMegabytes * mebibyte) / 4;
}

function workingSetIfThere(cgroup: string): number {
  try {
    return workingSet(cgroup);
  } catch {
    return 0;
  }
}

function oomKills(cgroup: string): number {
  const text = existsSync(cgroup) ? readFileSync(join(cgroup, "memory.oom_control"), "utf8") : "";
  return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0);
}
