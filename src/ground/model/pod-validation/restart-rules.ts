import type { Container } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkRequiredChoice } from "./container.ts";

const mostRules = 20;
const mostExitCodes = 255;

/** A container's own restart policy and its rules for exit codes. */
export function checkRestartRules(
  { restartPolicy, restartPolicyRules = [] }: Container,
  path: string,
  problems: ProblemList,
): void {
  if (restartPolicy !== undefined) {
    checkRequiredChoice(restartPolicy, ["Always", "Never", "OnFailure"], `${path}.restartPolicy`, problems);
  } else if (restartPolicyRules.length > 0) {
    problems.required(`${path}.restartPolicy`, "must specify restartPolicy when restart rules are used");
  }
  const rulesPath = `${path}.restartPolicyRules`;
  if (restartPolicyRules.length > mostRules) problems.tooMany(rulesPath, mostRules);
  for (const [index, { action, exitCodes }] of restartPolicyRules.entries()) {
    const at = `${rulesPath}[${index}]`;
    checkRequiredChoice(action, ["Restart", "RestartAllContainers"], `${at}.action`, problems);
    if (exitCodes === undefined) {
      problems.required(`${at}.exitCodes`, "must be specified");
      continue;
    }
    checkRequiredChoice(exitCodes.operator, ["In", "NotIn"], `${at}.exitCodes.operator`, problems);
    if ((exitCodes.values ?? []).length > mostExitCodes) problems.tooMany(`${at}.exitCodes.values`, mostExitCodes);
  }
}
