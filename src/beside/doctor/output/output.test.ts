import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Ajv } from "ajv";
import { validateXML } from "xmllint-wasm";
import { countStates, type DoctorFinding, type DoctorReport, states } from "../finding.ts";
import { reportAsJunit } from "./junit.ts";
import { reportAsMetrics } from "./metrics.ts";
import { reportAsSarif } from "./sarif.ts";
import { reportAsText } from "./text.ts";

const schemas = new URL("../../../../test/support/schemas/", import.meta.url);
const schema = (name: string): string => readFileSync(new URL(name, schemas), "utf8");

/** One finding of each kind, with all that breaks forms in its words. */
const findings = states.map(
  (state, index): DoctorFinding => ({
    id: `4.2.${index}`,
    group: index % 2 === 0 ? "cis settings" : "kernel log",
    title: `<b>"title" & ${state}</b>`,
    state,
    seen: `]]> & <seen> "by" 'us' \\ ü`,
    from: index === 0 ? "file /etc/a b/ü.yaml:7" : "",
    ...(index === 0 && { place: { file: "/etc/a b/ü.yaml", line: 7 } }),
    ...(index === 1 && { place: { file: "/etc/x", line: 0 } }),
    why: "it matters",
    fix: state === "pass" || state === "n/a" ? "" : "chmod 600 '/etc/a b'",
    ...(index < 3 && { benchmark: "automated" as const }),
  }),
);
const report: DoctorReport = {
  apiVersion: "nodelet.dev/v1",
  kind: "DoctorReport",
  node: "node-1",
  at: "2026-11-17T10:00:00.000Z",
  tookMs: 432,
  subject: "the lab",
  agent: { state: "running", socket: "/s", version: "0.1.0" },
  summary: countStates(findings),
  findings,
};
const nothing: DoctorReport = { ...report, node: "", findings: [], summary: countStates([]) };

for (const [what, each] of [
  ["one of each", report],
  ["nothing", nothing],
] as const) {
  test(`SARIF 2.1.0 by its schema: ${what}`, () => {
    const ajv = new Ajv({ strict: false, unicodeRegExp: false, validateFormats: false, allErrors: true });
    const validate = ajv.compile(JSON.parse(schema("sarif-2.1.0.schema")) as object);
    assert.ok(validate(JSON.parse(reportAsSarif(each))), JSON.stringify(validate.errors));
  });

  test(`JUnit by its schema: ${what}`, async () => {
    const xml = [{ fileName: "doctor.xml", contents: reportAsJunit(each) }];
    const { valid, errors } = await validateXML({
      xml,
      schema: [{ fileName: "junit.xsd", contents: schema("junit.xsd") }],
    });
    assert.ok(valid, errors.map(({ message }) => message).join("\n"));
  });
}

test("the schemas refuse what is wrong", async () => {
  const ajv = new Ajv({ strict: false, unicodeRegExp: false, validateFormats: false });
  const validate = ajv.compile(JSON.parse(schema("sarif-2.1.0.schema")) as object);
  assert.equal(validate(JSON.parse(reportAsSarif(report).replace('"kind": "open"', '"kind": "shut"'))), false);
  const xml = [{ fileName: "doctor.xml", contents: reportAsJunit(report).replaceAll("testcase", "case") }];
  assert.equal(
    (await validateXML({ xml, schema: [{ fileName: "junit.xsd", contents: schema("junit.xsd") }] })).valid,
    false,
  );
});

test("SARIF: levels, places and rules", () => {
  const log = JSON.parse(reportAsSarif(report)) as {
    runs: { results: { kind: string; level: string; ruleId: string; locations?: unknown }[] }[];
  };
  assert.deepEqual(
    log.runs[0]?.results.map(({ kind, level }) => `${kind} ${level}`),
    ["fail error", "open none", "fail warning", "review none", "pass none", "notApplicable none"],
  );
  assert.deepEqual(log.runs[0]?.results[0]?.locations, [
    { physicalLocation: { artifactLocation: { uri: "file:///etc/a%20b/%C3%BC.yaml" }, region: { startLine: 7 } } },
  ]);
});

test("JUnit: failures, errors and skipped are counted", () => {
  const xml = reportAsJunit(report);
  assert.match(xml, /<testsuites name="nodelet doctor" tests="6" failures="1" errors="1" time="0\.432">/);
  assert.match(
    xml,
    /<testsuite name="cis settings" tests="3" failures="1" errors="0" skipped="0" time="0" timestamp="2026-11-17T10:00:00" hostname="node-1">/,
  );
  assert.match(xml, /<testsuite name="kernel log" tests="3" failures="0" errors="1" skipped="2"/);
});

test("text: the worst first, with what mends it; what is well is counted", () => {
  const text = reportAsText(report);
  assert.deepEqual(
    [...text.matchAll(/^(FAIL|UNKNOWN|WARN|LOOK|PASS)\b/gm)].map(([word]) => word),
    ["FAIL", "UNKNOWN", "WARN", "LOOK"],
  );
  assert.match(text, /^Examined: the lab\.\n\nFAIL {4}4\.2\.0 {2}<b>/);
  assert.match(
    text,
    /\n {8}seen: .* \(file \/etc\/a b\/ü\.yaml:7\)\n {8}why: {2}it matters\n {8}fix: {2}chmod 600 '\/etc\/a b'\n/,
  );
  assert.match(
    text,
    /\n\n1 failure, 1 could not be found out, 1 warning, 1 for you to judge, 1 passed, 1 not applicable here \(0\.4 s\)\./,
  );
});

test("text: what leaves many checks without an answer is told once", () => {
  const unknown = (id: string, seen: string): DoctorFinding => {
    const told = { from: "", why: "", fix: "" };
    return { id, group: "disk", title: `title of ${id}`, state: "unknown", seen, ...told };
  };
  const blind = [unknown("a", "/x can't be read"), unknown("b", "no answer"), unknown("c", "/x can't be read")];
  const text = reportAsText({ ...report, findings: blind, summary: countStates(blind) });
  assert.equal(text.split("/x can't be read").length, 2);
  assert.match(text, /UNKNOWN 2 checks\n {8}seen: \/x can't be read\n {8}are: {2}a, c\n/);
  assert.match(text, /UNKNOWN b {2}title of b\n {8}seen: no answer\n/);
  assert.match(text, /3 could not be found out/);
});

test("metrics for Prometheus", () => {
  assert.equal(
    reportAsMetrics(report)
      .split("\n")
      .filter((line) => /^nodelet_doctor_findings\{state="(?:fail|unknown|warn|manual|pass|n\/a)"\} 1$/.test(line))
      .length,
    6,
  );
});
