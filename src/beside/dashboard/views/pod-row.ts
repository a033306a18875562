import type { LedgerView } from "../../../ground/base/index.ts";
import {
  type ContainerStateTerminated,
  isMirrorPod,
  isStaticPod,
  type Pod,
  podResources,
  summarize,
} from "../../../ground/model/index.ts";
import type { PodRow, Tone } from "../wire.ts";

/** A pod as one line of the table. */
export function podRow(pod: Pod, ledger: LedgerView | undefined): PodRow {
  const { metadata, spec } = pod;
  const summary = summarize(pod);
  const limits = spec === undefined ? undefined : podResources(spec, "without overhead").limits;
  const wait = ledger?.blocker;
  return {
    uid: metadata?.uid ?? "",
    name: metadata?.name ?? "",
    namespace: metadata?.namespace ?? "default",
    from: isMirrorPod(pod) ? "mirror" : isStaticPod(pod) ? "manifest" : "api",
    status: summary.status,
    tone: toneOf(pod, summary, wait !== undefined),
    ready: summary.ready,
    wanted: summary.wanted,
    restarts: summary.restarts,
    lastExit: lastExit(pod),
    createdAt: timeOf(metadata?.creationTimestamp) ?? summary.startedAt,
    ip: summary.ip,
    cpuLimit: wholeOf(limits?.get("cpu")),
    memoryLimit: wholeOf(limits?.get("memory")),
    wait: wait && { ...wait },
    doing: wait === undefined ? doing(ledger) : undefined,
    endsBy: timeOf(metadata?.deletionTimestamp),
  };
}

function toneOf({ metadata, status }: Pod, summary: ReturnType<typeof summarize>, waits: boolean): Tone {
  if (status?.phase === "Succeeded") return "over";
  if (summary.failed || /BackOff|Err|Error|Invalid|Unknown|OOM/.test(summary.status)) return "bad";
  if (metadata?.deletionTimestamp !== undefined) return "busy";
  return summary.settled && !waits ? "good" : "busy";
}

/** The last thing that is still going on. */
function doing(ledger: LedgerView | undefined): PodRow["doing"] {
  const step = ledger?.entries.findLast(({ outcome }) => outcome === "running");
  if (step === undefined) return undefined;
  return { what: step.subject === "" ? step.step : `${step.step} ${step.subject}`, since: step.startedAt };
}

function lastExit({ status }: Pod): PodRow["lastExit"] {
  let latest: PodRow["lastExit"];
  for (const { name, state, lastState } of [
    ...(status?.initContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
  ]) {
    const ended = state?.terminated ?? lastState?.terminated;
    if (ended === undefined || (ended.exitCode === 0 && ended.reason === "Completed")) continue;
    const at = timeOf(ended.finishedAt);
    if (latest === undefined || (at ?? 0) > (latest.at ?? 0)) latest = { container: name, text: exitText(ended), at };
  }
  return latest;
}

export function exitText({ exitCode, signal, reason }: ContainerStateTerminated): string {
  const how = signal !== undefined && signal > 0 ? `signal ${signal}` : `exit ${exitCode}`;
  return reason === undefined || reason === "Error" ? how : `${reason}, ${how}`;
}

export function timeOf(text: string | undefined): number | undefined {
  const time = text === undefined ? Number.NaN : Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

/** Amounts are counted in billionths. */
export function wholeOf(nano: bigint | undefined): number | undefined {
  return nano === undefined ? undefined : Number(nano) / 1e9;
}
