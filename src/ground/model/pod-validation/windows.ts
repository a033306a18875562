import type { PodSpec } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { containersWithPaths } from "./security-profiles.ts";

const operatingSystems: readonly string[] = ["linux", "windows"];

/** spec.os and what may not be set for the chosen operating system. */
export function checkOs(spec: PodSpec, problems: ProblemList): void {
  checkHostProcess(spec, problems);
  if (spec.os === undefined) return;
  switch (spec.os.name) {
    case "":
      problems.required("spec.os.name");
      break;
    case "linux":
      checkLinux(spec, problems);
      break;
    case "windows":
      checkWindows(spec, problems);
      break;
    default:
      problems.unsupported("spec.os", spec.os.name, operatingSystems);
  }
}

function checkLinux(spec: PodSpec, problems: ProblemList): void {
  const detail = "windows options cannot be set for a linux pod";
  if (spec.securityContext?.windowsOptions !== undefined) {
    problems.forbidden("spec.securityContext.windowsOptions", detail);
  }
  for (const [{ securityContext }, path] of containersWithPaths(spec)) {
    if (securityContext?.windowsOptions !== undefined) {
      problems.forbidden(`${path}.securityContext.windowsOptions`, detail);
    }
  }
}

const notForWindows = {
  pod: ["hostUsers", "shareProcessNamespace"],
  podTrue: ["hostPID", "hostIPC"],
  podSecurity: [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
  ],
  containerSecurity: [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
  ],
} as const;

function checkWindows(spec: PodSpec, problems: ProblemList): void {
  const detail = "cannot be set for a windows pod";
  for (const name of notForWindows.pod) if (spec[name] !== undefined) problems.forbidden(`spec.${name}`, detail);
  for (const name of notForWindows.podTrue) if (spec[name] === true) problems.forbidden(`spec.${name}`, detail);
  for (const name of notForWindows.podSecurity) {
    if (spec.securityContext?.[name] !== undefined) problems.forbidden(`spec.securityContext.${name}`, detail);
  }
  for (const [{ securityContext }, path] of containersWithPaths(spec)) {
    for (const name of notForWindows.containerSecurity) {
      if (securityContext?.[name] !== undefined) problems.forbidden(`${path}.securityContext.${name}`, detail);
    }
  }
}

function checkHostProcess(spec: PodSpec, problems: ProblemList): void {
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess;
  const containers = containersWithPaths(spec);
  let count = 0;
  for (const [{ securityContext }, path] of containers) {
    const own = securityContext?.windowsOptions?.hostProcess;
    if (ofPod !== undefined && own !== undefined && own !== ofPod) {
      problems.invalid(
        `${path}.securityContext.windowsOptions.hostProcess`,
        own,
        `pod hostProcess value must be identical if both are specified, was ${ofPod}`,
      );
    }
    if (own ?? ofPod) count++;
  }
  if (count === 0) return;
  if (count !== containers.length) {
    problems.invalid(
      "spec",
      "",
      "If pod contains any hostProcess containers then all containers must be HostProcess containers",
    );
  }
  if (spec.hostNetwork !== true) {
    problems.invalid("spec.hostNetwork", false, "hostNetwork must be true if pod contains any hostProcess containers");
  }
}
