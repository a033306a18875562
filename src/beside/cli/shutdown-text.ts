/** What the agent answers: what would happen if the machine were turned off now. */
export interface ShutdownPlanAnswer {
  readonly isUnderWay: boolean;
  readonly totalSeconds: number;
  readonly allowedSeconds?: number;
  readonly problem?: string;
  readonly buckets: readonly Bucket[];
}

interface Bucket {
  readonly priority: number;
  readonly seconds: number;
  readonly pods: readonly {
    readonly namespace: string;
    readonly name: string;
    readonly priority: number;
    readonly graceSeconds: number;
    readonly ownGraceSeconds: number;
    readonly isCutShort: boolean;
  }[];
}

/** Undefined: the node is not configured to end its pods when the machine turns off. */
export function shutdownText(plan: ShutdownPlanAnswer | undefined): string {
  if (plan === undefined) {
    return (
      "Pods would be cut off: neither shutdownGracePeriod nor shutdownGracePeriodByPodPriority is set.\n" +
      "Nobody waits for them but systemd, for as long as it does for any process.\n"
    );
  }
  const pods = plan.buckets.flatMap((bucket) => bucket.pods);
  const cut = pods.filter(({ isCutShort }) => isCutShort).length;
  const verdict =
    pods.length === 0
      ? "No pod runs here."
      : `${pods.length} ${pods.length === 1 ? "pod" : "pods"}, of which ${cut} would get less time than asked for.`;
  return `${[waitText(plan), ...plan.buckets.flatMap(bucketLines), verdict].join("\n")}\nAs of now: pods that come or go until then change the plan.\n`;
}

function waitText({ isUnderWay, totalSeconds, allowedSeconds, problem }: ShutdownPlanAnswer): string {
  if (isUnderWay) return `The machine is being turned off right now; its pods have ${totalSeconds} s in all.`;
  if (allowedSeconds === undefined) {
    return `Pods would be cut off: ${problem ?? "logind was not asked to wait for them"}.\nWith a lock of logind they would have ${totalSeconds} s in all:`;
  }
  const enough = allowedSeconds >= totalSeconds ? "" : "; what has not ended by then is cut off";
  return `Pods have ${totalSeconds} s in all; logind waits for up to ${allowedSeconds} s${enough}.`;
}

function bucketLines({ priority, seconds, pods }: Bucket): readonly string[] {
  const head = `priority ${priority} and up: ${seconds} s`;
  if (pods.length === 0) return [`${head}; no pods, so it takes no time`];
  const names = pods.map(({ namespace, name }) => `${namespace}/${name}`);
  const width = Math.max(...names.map((name) => name.length));
  return [
    head,
    ...pods.map(({ priority: own, graceSeconds, ownGraceSeconds, isCutShort }, index) => {
      const grace = isCutShort ? `${graceSeconds} s instead of ${ownGraceSeconds} s` : `${graceSeconds} s`;
      return `  ${(names[index] ?? "").padEnd(width)}  priority ${own}, ${grace}`;
    }),
  ];
}
