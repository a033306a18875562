import { describeProblem } from "../../ground/model/index.ts";
import type { ManifestReport, ReportProblem } from "./ports.ts";

/** Passes on what changed: each state of a manifest is reported once, and a clean one only after a bad one. */
export class ProblemReports {
  readonly #report: ReportProblem;
  readonly #last = new Map<string, string>();

  constructor(report: ReportProblem) {
    this.#report = report;
  }

  tell(report: ManifestReport): void {
    const { file, problems, keeping } = report;
    const state = [...problems.map(describeProblem), ...keeping.map(({ metadata }) => metadata.uid)].join("\n");
    if (problems.length === 0) {
      if (this.#last.delete(file)) this.#report(report);
    } else if (this.#last.get(file) !== state) {
      this.#last.set(file, state);
      this.#report(report);
    }
  }

  /** Files that were last reported with problems. */
  reported(): readonly string[] {
    return [...this.#last.keys()];
  }
}
