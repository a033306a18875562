import type { PodSpec, SecurityContext, WindowsSecurityContextOptions } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { dnsSubdomain, unixId } from "./names.ts";
import { checkAppArmor, checkSeccomp, containersWithPaths } from "./security-profiles.ts";

export function checkContainerSecurity(
  context: SecurityContext | undefined,
  hostUsers: boolean,
  path: string,
  problems: ProblemList,
): void {
  if (context === undefined) return;
  const { runAsUser, runAsGroup, procMount, allowPrivilegeEscalation, privileged, capabilities } = context;
  if (runAsUser !== undefined) problems.invalidEach(`${path}.runAsUser`, runAsUser, unixId(runAsUser));
  if (runAsGroup !== undefined) problems.invalidEach(`${path}.runAsGroup`, runAsGroup, unixId(runAsGroup));
  if (procMount !== undefined) {
    if (!["Default", "Unmasked"].includes(procMount)) {
      problems.unsupported(`${path}.procMount`, procMount, ["Default", "Unmasked"]);
    }
    if (hostUsers && procMount === "Unmasked") {
      problems.invalid(`${path}.procMount`, procMount, "`hostUsers` must be false to use `Unmasked`");
    }
  }
  checkSeccomp(context.seccompProfile, `${path}.seccompProfile`, problems);
  checkAppArmor(context.appArmorProfile, `${path}.appArmorProfile`, problems);
  if (allowPrivilegeEscalation === false) {
    if (privileged === true) {
      problems.invalid(path, context, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    }
    if (capabilities?.add?.includes("CAP_SYS_ADMIN")) {
      problems.invalid(
        path,
        context,
        "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
      );
    }
  }
  checkWindowsOptions(context.windowsOptions, `${path}.windowsOptions`, problems);
}

const fsGroupChangePolicies: readonly string[] = ["Always", "OnRootMismatch"];
const supplementalGroupsPolicies: readonly string[] = ["Merge", "Strict"];
const seLinuxChangePolicies: readonly string[] = ["MountOption", "Recursive"];

export function checkPodSecurity(spec: PodSpec, problems: ProblemList): void {
  const path = "spec.securityContext";
  const context = spec.securityContext ?? {};
  for (const name of ["fsGroup", "runAsUser", "runAsGroup"] as const) {
    const id = context[name];
    if (id !== undefined) problems.invalidEach(`${path}.${name}`, id, unixId(id));
  }
  for (const [index, id] of (context.supplementalGroups ?? []).entries()) {
    problems.invalidEach(`${path}.supplementalGroups[${index}]`, id, unixId(id));
  }
  if (spec.shareProcessNamespace === true && spec.hostPID === true) {
    problems.invalid("spec.shareProcessNamespace", true, "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  checkSysctls(spec, `${path}.sysctls`, problems);
  checkChoice(context.fsGroupChangePolicy, fsGroupChangePolicies, `${path}.fsGroupChangePolicy`, problems);
  checkChoice(
    context.supplementalGroupsPolicy,
    supplementalGroupsPolicies,
    `${path}.supplementalGroupsPolicy`,
    problems,
  );
  checkChoice(context.seLinuxChangePolicy, seLinuxChangePolicies, `${path}.seLinuxChangePolicy`, problems);
  checkSeccomp(context.seccompProfile, `${path}.seccompProfile`, problems);
  checkAppArmor(context.appArmorProfile, `${path}.appArmorProfile`, problems);
  checkWindowsOptions(context.windowsOptions, `${path}.windowsOptions`, problems);
}

function checkChoice(
  value: string | undefined,
  supported: readonly string[],
  path: string,
  problems: ProblemList,
): void {
  if (value !== undefined && !supported.includes(value)) problems.unsupported(path, value, supported);
}

const sysctlFormat = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const sysctlPattern = new RegExp(`^${sysctlFormat}$`);
const longestSysctl = 253;

function checkSysctls({ securityContext, hostNetwork, hostIPC }: PodSpec, path: string, problems: ProblemList): void {
  const names = new Set<string>();
  for (const [index, { name }] of (securityContext?.sysctls ?? []).entries()) {
    const at = `${path}[${index}].name`;
    if (name === "") problems.required(at);
    else if (name.length > longestSysctl || !sysctlPattern.test(name)) {
      problems.invalid(at, name, `must have at most ${longestSysctl} characters and match regex ^${sysctlFormat}$`);
    } else if (names.has(name)) problems.duplicate(at, name);
    names.add(name);
    const namespace = sysctlNamespace(name);
    if (hostNetwork === true && namespace === "net") {
      problems.invalid(at, name, "may not be specified when 'hostNetwork' is true");
    }
    if (hostIPC === true && namespace === "ipc") {
      problems.invalid(at, name, "may not be specified when 'hostIPC' is true");
    }
  }
}

function sysctlNamespace(name: string): "net" | "ipc" | undefined {
  const dotted = name.replaceAll("/", ".");
  if (dotted.startsWith("net.")) return "net";
  return dotted === "kernel.sem" || /^(?:kernel\.shm|kernel\.msg|fs\.mqueue\.)/.test(dotted) ? "ipc" : undefined;
}

/** What cannot be had together with users that mean nothing on the host. */
export function checkHostUsers(spec: PodSpec, problems: ProblemList): void {
  if (spec.hostUsers !== false) return;
  for (const name of ["hostNetwork", "hostPID", "hostIPC"] as const) {
    if (spec[name] === true) problems.forbidden(`spec.${name}`, "when `hostUsers` is false");
  }
  for (const [{ volumeDevices = [] }, path] of containersWithPaths(spec)) {
    if (volumeDevices.length > 0) problems.forbidden(`${path}.volumeDevices`, "when `hostUsers` is false");
  }
}

const longestCredentialSpecKiB = 64;

function checkWindowsOptions(
  options: WindowsSecurityContextOptions | undefined,
  path: string,
  problems: ProblemList,
): void {
  if (options === undefined) return;
  const { gmsaCredentialSpecName, gmsaCredentialSpec, runAsUserName } = options;
  if (gmsaCredentialSpecName !== undefined) {
    problems.invalidEach(
      `${path}.gmsaCredentialSpecName`,
      gmsaCredentialSpecName,
      dnsSubdomain(gmsaCredentialSpecName),
    );
  }
  if (gmsaCredentialSpec === "") {
    problems.invalid(`${path}.gmsaCredentialSpec`, "", "gmsaCredentialSpec cannot be an empty string");
  } else if ((gmsaCredentialSpec?.length ?? 0) > longestCredentialSpecKiB * 1024) {
    problems.invalidHidden(
      `${path}.gmsaCredentialSpec`,
      `gmsaCredentialSpec size must be under ${longestCredentialSpecKiB} KiB`,
    );
  }
  if (runAsUserName === "") {
    problems.invalid(`${path}.runAsUserName`, "", "runAsUserName cannot be an empty string");
  }
}
