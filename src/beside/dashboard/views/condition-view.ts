import type { ConditionView } from "../wire.ts";
import { timeOf } from "./pod-row.ts";

/** Conditions of which `True` is bad news. */
const badWhenTrue =
  /Pressure$|^NetworkUnavailable$|^DisruptionTarget$|Problem$|Deadlock$|^ReadonlyFilesystem$|^PodResize/;

export function conditionView(condition: {
  readonly type: string;
  readonly status: string;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly lastTransitionTime?: string | undefined;
}): ConditionView {
  const { type, status, reason = "", message = "", lastTransitionTime } = condition;
  const wanted = badWhenTrue.test(type) ? "False" : "True";
  const tone = status === wanted ? "good" : reason === "PodCompleted" ? "over" : status === "Unknown" ? "busy" : "bad";
  return { type, status, reason, message, since: timeOf(lastTransitionTime), tone };
}
