import { userInfo } from "node:os";
import { flagProblems } from "../../ground/config/index.ts";
import type { DoctorReport } from "../doctor/index.ts";
import { defineCommand } from "./define-command.ts";
import { UsageError } from "./io.ts";
import { agentSocket } from "./running-agent.ts";
import { closestTo } from "./suggest.ts";
import { doctorDescription } from "./table/node-commands.ts";

/** Examines the node. */
export const doctorCommand = defineCommand(doctorDescription, async ({ options, rest }, io) => {
  const form = formOf(options);
  const [only, skip] = [wordsOf(options.only), wordsOf(options.skip)];
  const [refused] = flagProblems(rest);
  if (refused !== undefined) {
    const [word = ""] = (rest.find((each) => each.startsWith("--")) ?? "").split("=", 1);
    const meant = closestTo(
      word,
      Object.keys(doctorDescription.options).map((name) => `--${name}`),
    );
    throw new UsageError(`${refused}${meant === undefined ? "" : `; did you mean ${meant}?`}`);
  }
  // Only now: what is examined with is large, and a slip of the pen is answered without it.
  const doctor = await import("../doctor/index.ts");
  const [wrong] = doctor.unknownWords([...only, ...skip]);
  if (wrong !== undefined) {
    throw new UsageError(`there is no topic, group or check "${wrong}"; topics are ${doctor.topics.join(", ")}`);
  }
  // With other flags of the agent, its root directory is one of them.
  const rootDir = options["root-dir"];
  const flags = rest.length > 0 && rootDir !== undefined ? [...rest, `--root-dir=${rootDir}`] : rest;
  const report = await doctor.examine(
    {
      clock: io.clock,
      socket: await agentSocket(io, rootDir),
      env: io.env,
      cwd: io.cwd,
      uid: userInfo().uid,
      flags,
      isChosen: rootDir !== undefined,
      only,
      skip,
      publishes: options["node-conditions"],
    },
    io.signal,
  );
  const isWholeAgent = report.agent.state === "running" && [...rest, ...only, ...skip].length === 0;
  if (isWholeAgent) await doctor.tellAgent(report, io.clock, io.signal);
  io.stdout.write(render(doctor, report, form));
  const { nodeConditions } = report;
  if (nodeConditions !== undefined && "problem" in nodeConditions) {
    throw new Error(`the conditions of the Node were not written: ${nodeConditions.problem}`);
  }
  return doctorExitCode(report, options.strict);
});

type Form = "text" | "json" | "junit" | "sarif" | "metrics";

interface WantedForm {
  readonly output: string;
  readonly json: boolean;
  readonly junit: boolean;
  readonly sarif: boolean;
}

function formOf({ output, ...flags }: WantedForm): Form {
  const forms = (["json", "junit", "sarif"] as const).filter((name) => flags[name]);
  const [first, second] = [...forms, ...(output === "text" ? [] : [output as Form])].filter(
    (form, index, all) => all.indexOf(form) === index,
  );
  if (second !== undefined) throw new UsageError(`one form at a time, found ${first} and ${second}`);
  return first ?? "text";
}

function wordsOf(lists: readonly string[]): readonly string[] {
  return lists.flatMap((list) => list.split(",")).filter((word) => word !== "");
}

function render(doctor: typeof import("../doctor/index.ts"), report: DoctorReport, form: Form): string {
  switch (form) {
    case "text":
      return doctor.reportAsText(report);
    case "json":
      return `${JSON.stringify(report, undefined, 2)}\n`;
    case "junit":
      return doctor.reportAsJunit(report);
    case "sarif":
      return doctor.reportAsSarif(report);
    case "metrics":
      return doctor.reportAsMetrics(report);
  }
}

/** A failure is worse than not knowing; not knowing is not passing. */
export function doctorExitCode({ summary }: Pick<DoctorReport, "summary">, strict: boolean): number {
  if (summary.fail > 0 || (strict && summary.warn > 0)) return 1;
  return summary.unknown > 0 ? 3 : 0;
}
