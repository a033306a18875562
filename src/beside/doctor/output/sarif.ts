import { pathToFileURL } from "node:url";
import { NODELET_VERSION } from "../../../ground/config/index.ts";
import type { DoctorFinding, DoctorReport, State } from "../finding.ts";

/** SARIF 2.1.0 wants a level only where something is wrong. */
const kinds: Readonly<Record<State, { readonly kind: string; readonly level: string }>> = {
  fail: { kind: "fail", level: "error" },
  warn: { kind: "fail", level: "warning" },
  unknown: { kind: "open", level: "none" },
  manual: { kind: "review", level: "none" },
  pass: { kind: "pass", level: "none" },
  "n/a": { kind: "notApplicable", level: "none" },
};

/** SARIF 2.1.0, as code scanners read it. */
export function reportAsSarif(report: DoctorReport): string {
  const { findings } = report;
  const run = {
    tool: {
      driver: {
        name: "nodelet doctor",
        version: NODELET_VERSION,
        rules: findings.map(({ id, title, why, group, benchmark }) => ({
          id,
          shortDescription: { text: title },
          fullDescription: { text: why === "" ? title : why },
          properties: { tags: [group, ...(benchmark === undefined ? [] : ["CIS Kubernetes 1.12", benchmark])] },
        })),
      },
    },
    automationDetails: { id: `nodelet-doctor/${report.node}` },
    invocations: [{ executionSuccessful: true, startTimeUtc: report.at }],
    results: findings.map((finding, ruleIndex) => resultOf(finding, ruleIndex)),
  };
  const log = { $schema: "https://json.schemastore.org/sarif-2.1.0.json", version: "2.1.0", runs: [run] };
  return `${JSON.stringify(log, undefined, 2)}\n`;
}

function resultOf({ id, state, seen, from, fix, place }: DoctorFinding, ruleIndex: number): object {
  const text = [seen, from === "" ? "" : `From: ${from}.`, fix === "" ? "" : `Fix: ${fix}`]
    .filter((part) => part !== "")
    .join(" ");
  return {
    ruleId: id,
    ruleIndex,
    ...kinds[state],
    message: { text },
    ...(place !== undefined && {
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: pathToFileURL(place.file).href },
            ...(place.line !== undefined && place.line > 0 && { region: { startLine: place.line } }),
          },
        },
      ],
    }),
  };
}
