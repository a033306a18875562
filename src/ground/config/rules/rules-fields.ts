import { formatDuration } from "../../base/index.ts";
import { valueAt } from "../candidate.ts";
import { fieldPaths, label, specOf } from "../fields/fields.ts";
import { type RuleContext, shown } from "./rule-context.ts";

/** The rules that the table of fields states about single values. */
export function checkFields({ config, invalid }: RuleContext): void {
  for (const path of fieldPaths) {
    const { check, kind } = specOf(path);
    const value = valueAt(config, path);
    if (check === undefined || value === undefined || value === null || check.ok(value)) continue;
    const found = kind.unit === "Ms" ? formatDuration(Number(value)) : shown(value);
    invalid(path, `${label(path)} ${found} ${check.rule}`);
  }
}
