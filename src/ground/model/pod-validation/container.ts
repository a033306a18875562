import { pullPolicies } from "../image-reference.ts";
import type { Container, ContainerResizePolicy, PodSpec } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkEnv, checkEnvFrom } from "./env.ts";
import { checkMounts, type VolumesByName } from "./mounts.ts";
import { dnsLabel } from "./names.ts";
import { checkPorts } from "./ports.ts";
import { checkContainerResources } from "./resources.ts";
import { checkContainerSecurity } from "./security.ts";

/** What the checks of a container need to know of its pod. */
export interface ContainerSurroundings {
  readonly spec: PodSpec;
  readonly volumes: VolumesByName;
  readonly claimNames: ReadonlySet<string>;
}

const messagePolicies: readonly string[] = ["File", "FallbackToLogsOnError"];

/** What holds for regular, init and ephemeral containers alike. */
export function checkContainer(
  container: Container,
  { spec, volumes, claimNames }: ContainerSurroundings,
  path: string,
  problems: ProblemList,
): void {
  const { name, image = "", imagePullPolicy = "", terminationMessagePolicy = "" } = container;
  if (name === "") problems.required(`${path}.name`);
  else problems.invalidEach(`${path}.name`, name, dnsLabel(name));
  if (image === "") problems.required(`${path}.image`);
  else if (image.trim() !== image) {
    problems.invalid(`${path}.image`, image, "must not have leading or trailing whitespace");
  }
  checkRequiredChoice(terminationMessagePolicy, messagePolicies, `${path}.terminationMessagePolicy`, problems);
  checkPorts(container.ports ?? [], `${path}.ports`, problems);
  checkEnv(container.env ?? [], `${path}.env`, problems);
  checkEnvFrom(container.envFrom ?? [], `${path}.envFrom`, problems);
  checkMounts(container, volumes, path, problems);
  checkRequiredChoice(imagePullPolicy, pullPolicies, `${path}.imagePullPolicy`, problems);
  checkContainerResources(container.resources, claimNames, `${path}.resources`, problems);
  checkResizePolicies(container.resizePolicy ?? [], spec, `${path}.resizePolicy`, problems);
  checkContainerSecurity(container.securityContext, spec.hostUsers !== false, `${path}.securityContext`, problems);
}

export function checkRequiredChoice(
  value: string,
  supported: readonly string[],
  path: string,
  problems: ProblemList,
): void {
  if (value === "") problems.required(path);
  else if (!supported.includes(value)) problems.unsupported(path, value, supported);
}

function checkResizePolicies(
  policies: readonly ContainerResizePolicy[],
  { restartPolicy: podRestartPolicy }: PodSpec,
  path: string,
  problems: ProblemList,
): void {
  const names = new Set<string>();
  for (const [index, { resourceName, restartPolicy }] of policies.entries()) {
    const at = `${path}[${index}]`;
    if (names.has(resourceName)) problems.duplicate(at, resourceName);
    names.add(resourceName);
    checkRequiredChoice(resourceName, ["cpu", "memory"], `${at}.resourceName`, problems);
    checkRequiredChoice(restartPolicy, ["NotRequired", "RestartContainer"], `${at}.restartPolicy`, problems);
    if (podRestartPolicy === "Never" && restartPolicy !== "NotRequired") {
      problems.invalid(`${at}.restartPolicy`, restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'");
    }
  }
}
