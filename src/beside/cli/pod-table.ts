import type { ContainerSummary, PodSummary } from "./pod-summary.ts";

const headings = ["POD", "STATUS", "READY", "RESTARTS", "IP", "AGE"];

/** The pods and below each its containers, one line each, no line wider than the terminal. */
export function renderTable(pods: readonly PodSummary[], now: number, columns: number): readonly string[] {
  if (pods.length === 0) return ["No pods yet."];
  const rows = [headings];
  for (const pod of [...pods].sort((a, b) => a.name.localeCompare(b.name))) {
    rows.push(podRow(pod, now), ...pod.containers.map(containerRow));
  }
  const widths = headings.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => clip(row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "), columns));
}

function podRow(pod: PodSummary, now: number): string[] {
  const age = pod.startedAt === undefined ? "" : shortAge(now - pod.startedAt);
  return [pod.name, pod.status, `${pod.ready}/${pod.wanted}`, String(pod.restarts), pod.ip, age];
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

function clip(line: string, columns: number): string {
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
