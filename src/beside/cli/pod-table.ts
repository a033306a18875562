import type { ContainerSummary, PodSummary } from "../../ground/model/index.ts";
import { visibleLine } from "./visible-text.ts";

const headings = ["POD", "STATUS", "READY", "RESTARTS", "IP", "AGE"];
/** What kubectl adds to a wide table of pods. */
const wideHeadings = ["NODE", "NOMINATED NODE", "READINESS GATES"];

/** The pods and below each its containers, one line each, no line wider than the terminal. */
export function renderTable(
  pods: readonly PodSummary[],
  now: number,
  columns: number,
  naming: PodNaming = "plain",
  extent: TableExtent = "usual",
): readonly string[] {
  if (pods.length === 0) return ["No pods yet."];
  const isWide = extent === "wide";
  const rows = [isWide ? [...headings, ...wideHeadings] : headings];
  const called = pods.map((pod) => ({
    pod,
    name: shownName(pod, naming),
  }));
  for (const { pod, name } of called.sort((a, b) => a.name.localeCompare(b.name))) {
    rows.push(
      [...podRow(pod, name, now), ...(isWide ? wideCells(pod) : [])].map(visibleLine),
      ...pod.containers.map((each) => containerRow(each).map(visibleLine)),
    );
  }
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => clipLine(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "), columns));
}

export type TableExtent = "usual" | "wide";

/** With its namespace always, or only where that is not the usual one. Two pods are never called alike. */
export type PodNaming = "plain" | "by namespace";

export function shownName({ namespace, name }: PodSummary, naming: PodNaming): string {
  return naming === "plain" && namespace === "default" ? name : `${namespace}/${name}`;
}

function podRow(pod: PodSummary, name: string, now: number): string[] {
  const age = pod.startedAt === undefined ? "" : shortAge(now - pod.startedAt);
  return [name, pod.status, `${pod.ready}/${pod.wanted}`, String(pod.restarts), pod.ip, age];
}

function wideCells({ nodeName, nominatedNodeName, readinessGates: { ready, wanted } }: PodSummary): string[] {
  return [nodeName || "<none>", nominatedNodeName || "<none>", wanted === 0 ? "<none>" : `${ready}/${wanted}`];
}

function containerRow(container: ContainerSummary): string[] {
  const note = container.kind === "main" ? "" : ` (${container.kind})`;
  const ready = container.kind === "init" ? "" : container.ready ? "yes" : "no";
  return [`  ${container.name}${note}`, container.state, ready, String(container.restarts)];
}

/** 42s, 7m, 3h, 2d. */
export function shortAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  if (seconds < 2 * 3600) return `${Math.floor(seconds / 60)}m`;
  if (seconds < 2 * 86_400) return `${Math.floor(seconds / 3600)}h`;
  return `${Math.floor(seconds / 86_400)}d`;
}

export function clipLine(line: string, columns: number): string {
  const trimmed = line.trimEnd();
  return trimmed.length <= columns ? trimmed : `${trimmed.slice(0, Math.max(0, columns - 1))}…`;
}

/** The control text that draws `lines` over the `previous` ones, and leaves the cursor below. */
export function drawOver(previous: number, lines: readonly string[]): string {
  const up = previous > 0 ? `\x1b[${previous}A` : "";
  return `${up}\r\x1b[J${lines.map((line) => `${line}\n`).join("")}`;
}

/** As many lines as fit; the last one says how many do not. */
export function fitRows(lines: readonly string[], rows: number): readonly string[] {
  // The cursor needs the line below the table, or the screen scrolls and the next drawing starts too low.
  const room = Math.max(2, rows - 1);
  if (lines.length <= room) return lines;
  const hidden = lines.length - room + 1;
  return [...lines.slice(0, room - 1), `… and ${hidden} more lines`];
}
