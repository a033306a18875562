import type { DoctorFinding, DoctorReport } from "../finding.ts";

/**
 * JUnit's XML: a suite per group, a case per check. What failed is a failure; what could not be found out an error; what
 * does not apply or wants a person is skipped; a warning passes and says so in its output.
 */
export function reportAsJunit(report: DoctorReport): string {
  const names = new Set(report.findings.map(({ group }) => group));
  const suites = [...names].map((name) => [name, report.findings.filter(({ group }) => group === name)] as const);
  const lines = ['<?xml version="1.0" encoding="UTF-8"?>'];
  lines.push(
    `<testsuites ${attributes({ name: "nodelet doctor", ...countsOf(report.findings), time: seconds(report.tookMs) })}>`,
  );
  for (const [name, findings] of suites) {
    const timestamp = report.at.slice(0, 19);
    const skipped = findings.filter(isSkipped).length;
    lines.push(
      `  <testsuite ${attributes({ name, ...countsOf(findings), skipped, time: "0", timestamp, hostname: report.node || "unknown" })}>`,
    );
    for (const finding of findings) lines.push(...caseLines(finding));
    lines.push("  </testsuite>");
  }
  lines.push("</testsuites>", "");
  return lines.join("\n");
}

function countsOf(findings: readonly DoctorFinding[]) {
  return {
    tests: findings.length,
    failures: findings.filter(({ state }) => state === "fail").length,
    errors: findings.filter(({ state }) => state === "unknown").length,
  };
}

function isSkipped({ state }: DoctorFinding): boolean {
  return state === "n/a" || state === "manual";
}

function caseLines(finding: DoctorFinding): readonly string[] {
  const { id, group, title, state, seen } = finding;
  const open = `    <testcase ${attributes({ name: `${id} ${title}`, classname: `doctor.${group.replaceAll(" ", "-")}`, time: "0" })}`;
  const close = "    </testcase>";
  switch (state) {
    case "pass":
      return [`${open}/>`];
    case "warn":
      return [`${open}>`, `      <system-out>warning: ${escaped(story(finding))}</system-out>`, close];
    case "fail":
    case "unknown": {
      const element = state === "fail" ? "failure" : "error";
      return [
        `${open}>`,
        `      <${element} ${attributes({ message: seen, type: state })}>${escaped(story(finding))}</${element}>`,
        close,
      ];
    }
    case "n/a":
    case "manual":
      return [`${open}>`, `      <skipped>${escaped(seen)}</skipped>`, close];
  }
}

function story({ seen, from, why, fix }: DoctorFinding): string {
  return [`seen: ${seen}`, from === "" ? "" : `from: ${from}`, `why: ${why}`, fix === "" ? "" : `fix: ${fix}`]
    .filter((line) => line !== "")
    .join("\n");
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escaped(String(value))}"`)
    .join(" ");
}

/** Characters that XML 1.0 can't hold at all were taken out before. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
