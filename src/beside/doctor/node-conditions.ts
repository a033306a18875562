import type { DoctorFinding } from "./finding.ts";

/** A condition of the Node, as node-problem-detector writes them. */
export interface PublishedCondition {
  readonly type: string;
  readonly status: "True" | "False" | "Unknown";
  readonly reason: string;
  readonly message: string;
  readonly lastHeartbeatTime: string;
  readonly lastTransitionTime: string;
}

interface Kind {
  readonly type: string;
  /** The checks that it comes from. */
  readonly of: readonly string[];
  readonly well: { readonly reason: string; readonly message: string };
  readonly reason: string;
}

/** Types, reasons and messages are those of node-problem-detector: what people have set up for it goes on. */
const kinds: readonly Kind[] = [
  {
    type: "KernelDeadlock",
    of: ["kernel-log.hung-tasks"],
    well: { reason: "KernelHasNoDeadlock", message: "kernel has no deadlock" },
    reason: "TaskHung",
  },
  {
    type: "ReadonlyFilesystem",
    of: ["kernel-log.read-only", "disk.read-only"],
    well: { reason: "FilesystemIsNotReadOnly", message: "Filesystem is not read-only" },
    reason: "FilesystemIsReadOnly",
  },
];

const longestMessage = 1_000;

/** What the findings come to; conditions none of whose checks was made are left out, and stay as they are. */
export function nodeConditions(
  findings: readonly DoctorFinding[],
  before: readonly { readonly type: string; readonly status: string; readonly lastTransitionTime?: string }[],
  now: string,
): readonly PublishedCondition[] {
  return kinds.flatMap((kind) => {
    const own = findings.filter(({ id }) => kind.of.includes(id));
    if (own.length === 0) return [];
    const judged = judge(kind, own);
    const last = before.find(({ type }) => type === kind.type);
    const since = last?.status === judged.status ? last.lastTransitionTime : undefined;
    return [{ type: kind.type, ...judged, lastHeartbeatTime: now, lastTransitionTime: since ?? now }];
  });
}

function judge({ well, reason }: Kind, own: readonly DoctorFinding[]) {
  const trouble = own.find(({ state }) => state === "fail" || state === "warn");
  if (trouble !== undefined) return { status: "True", reason, message: trouble.seen.slice(0, longestMessage) } as const;
  const untold = own.find(({ state }) => state === "unknown");
  if (untold === undefined) return { status: "False", ...well } as const;
  return { status: "Unknown", reason: "NotExamined", message: untold.seen.slice(0, longestMessage) } as const;
}
