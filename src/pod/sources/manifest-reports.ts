import type { Logger } from "../../ground/base/index.ts";
import { describePod, type Problem, type RecordPodEvent } from "../../ground/model/index.ts";
import type { ReportProblem } from "./ports.ts";

/** A bad manifest shows in the log, in the health report and, where its pod still runs, as an event of that pod. */
export function reportManifests(ports: {
  readonly health: {
    report(name: string, state: { readonly state: "waiting"; readonly reason: string }): void;
    forget(name: string): void;
  };
  readonly log: Logger;
  readonly recordEvent: RecordPodEvent;
}): ReportProblem {
  return ({ source, file, problems, keeping }) => {
    const name = `manifest ${file}`;
    const errors = problems.filter(({ severity }) => severity === "error");
    for (const problem of problems) {
      const fields = { source, file, field: problem.field, problem: problem.message };
      if (problem.severity === "error") ports.log.error("Invalid manifest", text(problem), fields);
      else ports.log.warn("Manifest with warnings", fields);
    }
    if (errors.length === 0) {
      ports.health.forget(name);
      return;
    }
    const summary = errors.map(text).join("; ");
    ports.health.report(name, { state: "waiting", reason: summary });
    for (const pod of keeping) {
      ports.recordEvent(pod, {
        type: "Warning",
        reason: "FailedValidation",
        message: `Error validating pod ${describePod(pod)} from ${source}, keeping its last good version: ${summary}`,
      });
    }
  };
}

function text({ field, message }: Problem): string {
  return field === "" ? message : `${field}: ${message}`;
}
