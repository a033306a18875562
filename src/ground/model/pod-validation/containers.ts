import type { EphemeralContainer } from "../kube/gen/types.ts";
import { isSidecar } from "../pod.ts";
import type { ProblemList } from "../problem.ts";
import { type ContainerSurroundings, checkContainer } from "./container.ts";
import { checkLifecycle, checkProbes } from "./handlers.ts";
import { checkHostPortConflicts } from "./ports.ts";
import { checkRestartRules } from "./restart-rules.ts";

export function checkContainers(pod: ContainerSurroundings, problems: ProblemList): void {
  checkRegular(pod, problems);
  checkInit(pod, problems);
  checkEphemeral(pod, problems);
}

function checkRegular(pod: ContainerSurroundings, problems: ProblemList): void {
  const { containers } = pod.spec;
  if (containers.length === 0) problems.required("spec.containers");
  const names = new Set<string>();
  for (const [index, container] of containers.entries()) {
    const path = `spec.containers[${index}]`;
    checkContainer(container, pod, path, problems);
    if (names.has(container.name)) problems.duplicate(`${path}.name`, container.name);
    if (container.name !== "") names.add(container.name);
    if (container.lifecycle !== undefined) checkLifecycle(container.lifecycle, pod.spec, `${path}.lifecycle`, problems);
    checkProbes(container, pod.spec, path, problems);
    checkRestartRules(container, path, problems);
  }
  checkHostPortConflicts(
    containers.map((container, index) => [container, `spec.containers[${index}]`]),
    problems,
  );
}

const onlyForSidecars = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] as const;

function checkInit(pod: ContainerSurroundings, problems: ProblemList): void {
  const names = new Set(pod.spec.containers.map(({ name }) => name));
  for (const [index, container] of (pod.spec.initContainers ?? []).entries()) {
    const path = `spec.initContainers[${index}]`;
    checkContainer(container, pod, path, problems);
    if (names.has(container.name)) problems.duplicate(`${path}.name`, container.name);
    if (container.name !== "") names.add(container.name);
    // Init containers run one by one, so only ports of the same one can be in conflict.
    checkHostPortConflicts([[container, path]], problems);
    if (isSidecar(container)) {
      if (container.lifecycle !== undefined) {
        checkLifecycle(container.lifecycle, pod.spec, `${path}.lifecycle`, problems);
      }
      checkProbes(container, pod.spec, path, problems);
    } else {
      for (const name of onlyForSidecars) {
        if (container[name] === undefined) continue;
        problems.forbidden(`${path}.${name}`, "may not be set for init containers without restartPolicy=Always");
      }
    }
    checkRestartRules(container, path, problems);
  }
}

const notForEphemeral = [
  "ports",
  "resources",
  "lifecycle",
  "livenessProbe",
  "readinessProbe",
  "startupProbe",
  "resizePolicy",
  "restartPolicy",
  "restartPolicyRules",
] as const;

function checkEphemeral(pod: ContainerSurroundings, problems: ProblemList): void {
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  if (ephemeralContainers.length > 0) problems.forbidden("spec.ephemeralContainers", "cannot be set on create");
  const targets = new Set([...containers, ...initContainers].map(({ name }) => name));
  const names = new Set(targets);
  for (const [index, container] of ephemeralContainers.entries()) {
    const path = `spec.ephemeralContainers[${index}]`;
    checkContainer(container, pod, path, problems);
    if (names.has(container.name)) problems.duplicate(`${path}.name`, container.name);
    names.add(container.name);
    checkEphemeralOnly(container, targets, path, problems);
  }
}

function checkEphemeralOnly(
  container: EphemeralContainer,
  targets: ReadonlySet<string>,
  path: string,
  problems: ProblemList,
): void {
  const { targetContainerName = "", volumeMounts = [] } = container;
  if (targetContainerName !== "" && !targets.has(targetContainerName)) {
    problems.notFound(`${path}.targetContainerName`, targetContainerName);
  }
  const detail = "cannot be set for an Ephemeral Container";
  for (const name of notForEphemeral) {
    const value = container[name];
    if (value === undefined || (typeof value === "object" && Object.keys(value).length === 0)) continue;
    problems.forbidden(`${path}.${name}`, detail);
  }
  for (const [index, { subPath = "", subPathExpr = "" }] of volumeMounts.entries()) {
    if (subPath !== "") problems.forbidden(`${path}.volumeMounts[${index}].subPath`, detail);
    if (subPathExpr !== "") problems.forbidden(`${path}.volumeMounts[${index}].subPathExpr`, detail);
  }
}
