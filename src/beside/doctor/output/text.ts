import { type DoctorFinding, type DoctorReport, type State, worstFirst } from "../finding.ts";

const headings: readonly (readonly [State, string])[] = [
  ["fail", "FAIL"],
  ["unknown", "UNKNOWN"],
  ["warn", "WARN"],
  ["manual", "LOOK"],
];

/** For people: what is wrong first, each with what mends it; what is well is only counted. */
export function reportAsText(report: DoctorReport): string {
  const { findings, summary, subject, tookMs } = report;
  const told = headings.flatMap(([state, word]) => {
    const found = worstFirst(findings).filter((finding) => finding.state === state);
    return state === "unknown" ? unknownEntries(found, word) : found.map((finding) => entry(finding, word));
  });
  const head = `Examined: ${subject}.`;
  const counts = [
    counted(summary.fail, "failure", "failures"),
    counted(summary.unknown, "could not be found out", "could not be found out"),
    counted(summary.warn, "warning", "warnings"),
    counted(summary.manual, "for you to judge", "for you to judge"),
    counted(summary.pass, "passed", "passed"),
    counted(summary["n/a"], "not applicable here", "not applicable here"),
  ].filter((text) => text !== "");
  return [
    head,
    ...told,
    ...conditionLines(report),
    `${counts.join(", ")} (${(tookMs / 1000).toFixed(1)} s). All of it: --json.`,
  ]
    .join("\n\n")
    .concat("\n");
}

function conditionLines({ nodeConditions }: DoctorReport): readonly string[] {
  if (nodeConditions === undefined || "problem" in nodeConditions) return [];
  return [`Written to the Node: ${nodeConditions.written.map(({ type, status }) => `${type}=${status}`).join(", ")}.`];
}

function counted(count: number, one: string, many: string): string {
  return count === 0 ? "" : `${count} ${count === 1 ? one : many}`;
}

/** One file that can't be read may leave sixty checks without an answer: people are told of it once. */
function unknownEntries(found: readonly DoctorFinding[], word: string): readonly string[] {
  const byReason = new Map<string, DoctorFinding[]>();
  for (const finding of found) {
    const same = byReason.get(finding.seen);
    if (same === undefined) byReason.set(finding.seen, [finding]);
    else same.push(finding);
  }
  return [...byReason].map(([seen, [first, ...others]]) => {
    if (first === undefined) return "";
    if (others.length === 0) return entry(first, word);
    const checks = [first, ...others].map(({ id }) => id).join(", ");
    return [`${word.padEnd(8)}${others.length + 1} checks`, row("seen", seen), row("are", checks)].join("\n");
  });
}

function entry({ id, title, seen, from, why, fix, state }: DoctorFinding, word: string): string {
  const lines = [
    `${word.padEnd(8)}${id}  ${title}`,
    row("seen", from === "" || seen.includes(from) ? seen : `${seen} (${from})`),
  ];
  if (state !== "manual") lines.push(row("why", why));
  if (fix !== "") lines.push(row("fix", fix));
  return lines.join("\n");
}

function row(name: string, text: string): string {
  return `        ${`${name}:`.padEnd(6)}${text}`;
}
