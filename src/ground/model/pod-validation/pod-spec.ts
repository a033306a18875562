import type { PodResourceClaim, PodSpec } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkAffinity } from "./affinity.ts";
import { checkRequiredChoice } from "./container.ts";
import { checkDns, checkHostAliases } from "./dns.ts";
import { checkLabels } from "./labels.ts";
import type { VolumesByName } from "./mounts.ts";
import { dnsLabel, dnsSubdomain, inRange, qualifiedName } from "./names.ts";
import { checkPodResources } from "./pod-resources.ts";
import { checkHostNetworkPorts } from "./ports.ts";
import { checkOverhead } from "./resources.ts";
import { checkSchedulingGates, checkTolerations, checkTopologySpread } from "./scheduling.ts";
import { checkHostUsers, checkPodSecurity } from "./security.ts";
import { containersWithPaths } from "./security-profiles.ts";
import { checkOs } from "./windows.ts";

const restartPolicies: readonly string[] = ["Always", "OnFailure", "Never"];
const preemptionPolicies: readonly string[] = ["PreemptLowerPriority", "Never"];
const longestHostname = 64;

/** Everything of the spec except volumes and containers. */
export function checkPodSpec(spec: PodSpec, volumes: VolumesByName, problems: ProblemList): void {
  const { terminationGracePeriodSeconds, activeDeadlineSeconds, preemptionPolicy } = spec;
  if (terminationGracePeriodSeconds === undefined) problems.required("spec.terminationGracePeriodSeconds");
  checkPodResources(spec, problems);
  checkHostNetworkPorts(spec, problems);
  checkRequiredChoice(spec.restartPolicy ?? "", restartPolicies, "spec.restartPolicy", problems);
  checkDns(spec, problems);
  checkLabels(spec.nodeSelector, "spec.nodeSelector", problems);
  checkPodSecurity(spec, problems);
  checkAffinity(spec.affinity, "spec.affinity", problems);
  for (const [index, { conditionType }] of (spec.readinessGates ?? []).entries()) {
    problems.invalidEach(`spec.readinessGates[${index}].conditionType`, conditionType, qualifiedName(conditionType));
  }
  checkSchedulingGates(spec.schedulingGates ?? [], spec, problems);
  checkTopologySpread(spec.topologySpreadConstraints ?? [], "spec.topologySpreadConstraints", problems);
  checkHostUsers(spec, problems);
  checkNames(spec, problems);
  if (activeDeadlineSeconds !== undefined) {
    problems.invalidEach(
      "spec.activeDeadlineSeconds",
      activeDeadlineSeconds,
      inRange(activeDeadlineSeconds, 1, 2 ** 31 - 1),
    );
  }
  checkTolerations(spec.tolerations ?? [], "spec.tolerations", problems);
  checkHostAliases(spec.hostAliases ?? [], "spec.hostAliases", problems);
  if (preemptionPolicy !== undefined) {
    checkRequiredChoice(preemptionPolicy, preemptionPolicies, "spec.preemptionPolicy", problems);
  }
  checkOverhead(spec.overhead, "spec.overhead", problems);
  checkOs(spec, problems);
  checkEnvFiles(spec, volumes, problems);
  checkTokenProjections(spec, problems);
}

const nameRules = [
  ["serviceAccountName", dnsSubdomain],
  ["nodeName", dnsSubdomain],
  ["hostname", dnsLabel],
  ["subdomain", dnsLabel],
  ["priorityClassName", dnsSubdomain],
] as const;

function checkNames(spec: PodSpec, problems: ProblemList): void {
  for (const [field, rule] of nameRules) {
    const name = spec[field] ?? "";
    if (name !== "") problems.invalidEach(`spec.${field}`, name, rule(name));
  }
  const { runtimeClassName, hostnameOverride } = spec;
  if (runtimeClassName !== undefined) {
    problems.invalidEach("spec.runtimeClassName", runtimeClassName, dnsSubdomain(runtimeClassName));
  }
  if (hostnameOverride === undefined) return;
  const path = "spec.hostnameOverride";
  if (spec.setHostnameAsFQDN === true) {
    problems.forbidden(path, "may not be specified when setHostnameAsFQDN is true");
  }
  if (spec.hostNetwork === true) problems.forbidden(path, "may not be specified when hostNetwork is true");
  if (hostnameOverride.length > longestHostname) problems.tooLong(path, longestHostname);
  problems.invalidEach(path, hostnameOverride, dnsSubdomain(hostnameOverride));
}

export function checkResourceClaims(
  claims: readonly PodResourceClaim[],
  path: string,
  problems: ProblemList,
): ReadonlySet<string> {
  const names = new Set<string>();
  for (const [index, claim] of claims.entries()) {
    const at = `${path}[${index}]`;
    const { name, resourceClaimName, resourceClaimTemplateName } = claim;
    if (name === "") problems.required(`${at}.name`);
    else if (names.has(name)) problems.duplicate(`${at}.name`, name);
    else problems.invalidEach(`${at}.name`, name, dnsLabel(name));
    if (name !== "") names.add(name);
    if (resourceClaimName !== undefined && resourceClaimTemplateName !== undefined) {
      problems.invalid(at, claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
    }
    if (resourceClaimName === undefined && resourceClaimTemplateName === undefined) {
      problems.invalid(at, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
    }
    for (const field of ["resourceClaimName", "resourceClaimTemplateName"] as const) {
      const value = claim[field];
      if (value !== undefined) problems.invalidEach(`${at}.${field}`, value, dnsSubdomain(value));
    }
  }
  return names;
}

/** Variables read from a file need a volume that lives as long as the pod. */
function checkEnvFiles(spec: PodSpec, volumes: VolumesByName, problems: ProblemList): void {
  for (const [{ env = [] }, path] of containersWithPaths(spec)) {
    for (const [index, { valueFrom }] of env.entries()) {
      const volumeName = valueFrom?.fileKeyRef?.volumeName;
      if (!volumeName) continue;
      const at = `${path}.env[${index}].valueFrom.fileKeyRef.volumeName`;
      const volume = volumes.get(volumeName);
      if (volume === undefined) problems.notFound(at, volumeName);
      else if (volume.emptyDir === undefined) {
        problems.invalid(at, volumeName, "referenced volume must be of type emptyDir");
      }
    }
  }
}

function checkTokenProjections({ serviceAccountName, volumes = [] }: PodSpec, problems: ProblemList): void {
  if (serviceAccountName) return;
  for (const [index, { projected }] of volumes.entries()) {
    for (const [sourceIndex, { serviceAccountToken }] of (projected?.sources ?? []).entries()) {
      if (serviceAccountToken === undefined) continue;
      problems.forbidden(
        `spec.volumes[${index}].projected.sources[${sourceIndex}].serviceAccountToken`,
        "must not be specified when serviceAccountName is not set",
      );
    }
  }
}
