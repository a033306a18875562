import { formatDuration, type LedgerEntry, type LedgerView } from "../../ground/base/index.ts";
import { type PullAnswer, progressText } from "./pull-text.ts";
import { textTable } from "./text-table.ts";
import { visibleLine } from "./visible-text.ts";

/** What the agent answers when asked for the ledger of a pod. */
export interface LedgerAnswer {
  readonly pod: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly phase?: string;
  };
  readonly ledger: LedgerView;
  /** Of its images; missing in the answer of an older agent. */
  readonly pulls?: readonly PullAnswer[];
  /** The agent's clock when it answered. */
  readonly now: number;
}

/** What is this pod waiting for, since when, what was tried, when is the next try. */
export function whyText({ pod, ledger, pulls = [], now }: LedgerAnswer): string {
  const lines = [`${pod.namespace}/${pod.name} is ${pod.phase ?? "not started"} (uid ${pod.uid})`];
  const { blocker, entries, dropped } = ledger;
  if (blocker === undefined) {
    const running = entries.filter(({ outcome }) => outcome === "running");
    const doing = running.map((entry) => `${nameOf(entry)} for ${span(now - entry.startedAt)}`);
    lines.push(doing.length === 0 ? "waiting for: nothing" : `at work on: ${doing.join(", ")}`);
  } else {
    lines.push(
      `waiting for: ${visibleLine(blocker.reason)} since ${span(now - blocker.since)} (${clockTime(blocker.since)})`,
    );
    lines.push(`             ${visibleLine(blocker.message)}`);
    if (blocker.nextTryAt !== undefined) {
      const ahead = blocker.nextTryAt - now;
      lines.push(`next try:    ${ahead > 0 ? `in ${span(ahead)}` : "now"} (${clockTime(blocker.nextTryAt)})`);
    }
  }
  for (const { image, progress } of pulls) {
    if (progress !== undefined) lines.push(`             ${visibleLine(image)}: ${progressText(progress)}`);
  }
  lines.push("", "what happened:");
  const [first] = entries;
  const shown = entries.map((entry) => [
    clockTime(entry.startedAt),
    `+${span(entry.startedAt - (first?.startedAt ?? 0))}`,
    nameOf(entry),
    outcomeOf(entry, now),
    entry.message ?? "",
  ]);
  lines.push(...textTable(shown, "  "));
  if (dropped > 0) lines.push(`(${dropped} more in between are no longer kept)`);
  return `${lines.join("\n")}\n`;
}

/** Where the time from the first sight of a pod to its running containers went. */
export function blameText({ pod, ledger, now }: LedgerAnswer): string {
  const { entries } = ledger;
  const from = entries.find(({ step }) => step === "seen")?.startedAt ?? entries[0]?.startedAt;
  const until = startedUp(entries, now);
  if (from === undefined) return `${pod.namespace}/${pod.name}: the agent has no record of its start\n`;
  const within = entries.filter((entry) => entry.startedAt < until);
  const total = Math.max(until - from, 0);
  let accounted = 0;
  const rows: string[][] = [];
  for (const { name, steps } of shares) {
    const ms = covered(
      within.filter(({ step }) => steps.includes(step)),
      from,
      until,
    );
    accounted += ms;
    rows.push([name, span(ms), percent(ms, total)]);
  }
  // Images are fetched while the sandbox is made, so the parts may add up to more than the whole.
  const agentMs = Math.max(
    total -
      covered(
        within.filter(({ step }) => allSteps.includes(step)),
        from,
        until,
      ),
    0,
  );
  rows.push(["agent and waiting", span(agentMs), percent(agentMs, total)]);
  const overlap = accounted + agentMs - total;
  const state = until === now ? "so far" : "from first sight to ready containers";
  const lines = [`${pod.namespace}/${pod.name}: ${span(total)} ${state}`, ...textTable(rows, "  ")];
  if (overlap > 1) lines.push(`(${span(overlap)} of this went on side by side)`);
  lines.push("", "longest steps:");
  const longest = within
    .filter(({ endedAt }) => endedAt !== undefined)
    .toSorted((a, b) => durationOf(b, now) - durationOf(a, now))
    .slice(0, 5);
  lines.push(
    ...textTable(
      longest.map((entry) => [nameOf(entry), span(durationOf(entry, now)), entry.message ?? ""]),
      "  ",
    ),
  );
  return `${lines.join("\n")}\n`;
}

const shares: readonly { readonly name: string; readonly steps: readonly string[] }[] = [
  { name: "sandbox (runtime and pod network)", steps: ["sandbox"] },
  { name: "images", steps: ["pull"] },
  { name: "containers (runtime)", steps: ["create", "start"] },
  { name: "hooks", steps: ["hook"] },
  { name: "volumes and cgroup", steps: ["volumes", "cgroup"] },
  { name: "resource claims", steps: ["claims"] },
];

const allSteps: readonly string[] = shares.flatMap(({ steps }) => steps);

/** The end of the start-up: when the pod was first ready, or at least ran. */
function startedUp(entries: readonly LedgerEntry[], now: number): number {
  const milestone = (wanted: string): number | undefined => entries.find(({ step }) => step === wanted)?.startedAt;
  return milestone("ready") ?? milestone("running") ?? now;
}

/** Length of the union of the intervals, cut to the window. */
function covered(entries: readonly LedgerEntry[], from: number, until: number): number {
  let sum = 0;
  let end = from;
  for (const entry of entries.toSorted((a, b) => a.startedAt - b.startedAt)) {
    const start = Math.max(entry.startedAt, end);
    const stop = Math.min(entry.endedAt ?? until, until);
    if (stop > start) {
      sum += stop - start;
      end = stop;
    }
  }
  return sum;
}

function durationOf(entry: LedgerEntry, now: number): number {
  return (entry.endedAt ?? now) - entry.startedAt;
}

function nameOf({ step, subject }: LedgerEntry): string {
  // The subject may be an image as a pod names it.
  return visibleLine(subject === "" ? step : `${step} ${subject}`);
}

function outcomeOf(entry: LedgerEntry, now: number): string {
  const took = durationOf(entry, now);
  const last = entry.lastAt === undefined ? "" : `, last ${span(now - entry.lastAt)} ago`;
  const times = entry.repeats === undefined ? "" : ` (${entry.repeats} times${last})`;
  if (entry.outcome === "running") return `still at it after ${span(took)}`;
  if (entry.outcome === "failed") return `failed after ${span(took)}${times}`;
  return took === 0 ? times.trim() : `took ${span(took)}${times}`;
}

/** A time as people say it: rough where it is long. */
export function span(ms: number): string {
  const rounded = Math.round(ms);
  return formatDuration(rounded >= 10_000 ? Math.round(rounded / 1000) * 1000 : rounded);
}

function percent(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${Math.round((part / whole) * 100)} %`;
}

function clockTime(ms: number): string {
  return new Date(ms).toISOString().slice(11, 23);
}
