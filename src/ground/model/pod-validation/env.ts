import type {
  EnvFromSource,
  EnvVar,
  EnvVarSource,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { canonicalQuantity } from "../quantity-format.ts";
import { configKey, dnsSubdomain, envVarName, qualifiedName } from "./names.ts";
import { checkNonReservedPath } from "./paths.ts";

const envFields: readonly string[] = [
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
  "spec.nodeName",
  "spec.serviceAccountName",
  "status.hostIP",
  "status.hostIPs",
  "status.podIP",
  "status.podIPs",
];
const volumeFields: readonly string[] = [
  "metadata.annotations",
  "metadata.labels",
  "metadata.name",
  "metadata.namespace",
  "metadata.uid",
];
/** Fields that the API knows but that may be used elsewhere only. */
const knownFields: ReadonlySet<string> = new Set([
  ...envFields,
  ...volumeFields,
  "status.phase",
  "spec.restartPolicy",
  "spec.schedulerName",
]);

export function checkEnv(variables: readonly EnvVar[], path: string, problems: ProblemList): void {
  for (const [index, variable] of variables.entries()) {
    const at = `${path}[${index}]`;
    if (variable.name === "") problems.required(`${at}.name`);
    else problems.invalidEach(`${at}.name`, variable.name, envVarName(variable.name));
    if (variable.valueFrom !== undefined) {
      checkValueFrom(variable.valueFrom, variable.value ?? "", `${at}.valueFrom`, problems);
    }
  }
}

function checkValueFrom(source: EnvVarSource, value: string, path: string, problems: ProblemList): void {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  if (fieldRef !== undefined) checkFieldRef(fieldRef, "env", `${path}.fieldRef`, problems);
  if (resourceFieldRef !== undefined) {
    checkResourceFieldRef(resourceFieldRef, "env", `${path}.resourceFieldRef`, problems);
  }
  if (configMapKeyRef !== undefined) checkKeyRef(configMapKeyRef, `${path}.configMapKeyRef`, problems);
  if (secretKeyRef !== undefined) checkKeyRef(secretKeyRef, `${path}.secretKeyRef`, problems);
  if (fileKeyRef !== undefined) {
    const at = `${path}.fileKeyRef`;
    if (fileKeyRef.key === "") problems.required(`${at}.key`);
    else problems.invalidEach(`${at}.key`, fileKeyRef.key, envVarName(fileKeyRef.key));
    if (fileKeyRef.volumeName === "") problems.required(`${at}.volumeName`);
    if (fileKeyRef.path === "") problems.required(`${at}.path`);
    else checkNonReservedPath(fileKeyRef.path, `${at}.path`, problems);
  }
  const count = Object.values(source).filter((item) => item !== undefined).length;
  if (count === 0) {
    problems.invalid(
      path,
      "",
      "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
    );
  } else if (value !== "") {
    problems.invalid(path, "", "may not be specified when `value` is not empty");
  } else if (count > 1) {
    problems.invalid(path, "", "may not have more than one field specified at a time");
  }
}

function checkKeyRef(
  { name = "", key }: { readonly name?: string | undefined; readonly key: string },
  path: string,
  problems: ProblemList,
): void {
  problems.invalidEach(`${path}.name`, name, dnsSubdomain(name));
  if (key === "") problems.required(`${path}.key`);
  else problems.invalidEach(`${path}.key`, key, configKey(key));
}

export function checkEnvFrom(sources: readonly EnvFromSource[], path: string, problems: ProblemList): void {
  for (const [index, { prefix = "", configMapRef, secretRef }] of sources.entries()) {
    const at = `${path}[${index}]`;
    if (prefix !== "") problems.invalidEach(`${at}.prefix`, prefix, envVarName(prefix));
    if (configMapRef !== undefined) checkObjectName(configMapRef.name, `${at}.configMapRef.name`, problems);
    if (secretRef !== undefined) checkObjectName(secretRef.name, `${at}.secretRef.name`, problems);
    if (configMapRef === undefined && secretRef === undefined) {
      problems.invalid(at, "", "must specify one of: `configMapRef` or `secretRef`");
    } else if (configMapRef !== undefined && secretRef !== undefined) {
      problems.invalid(at, "", "may not have more than one field specified at a time");
    }
  }
}

function checkObjectName(name: string | undefined, path: string, problems: ProblemList): void {
  if (!name) problems.required(path);
  else problems.invalidEach(path, name, dnsSubdomain(name));
}

const subscriptPattern = /^([^[\]]+)\['(.*)'\]$/;

/** A field of the pod, as an environment variable or as a file in a volume. */
export function checkFieldRef(
  { apiVersion = "", fieldPath }: ObjectFieldSelector,
  use: "env" | "volume",
  path: string,
  problems: ProblemList,
): void {
  if (apiVersion === "") {
    problems.required(`${path}.apiVersion`);
    return;
  }
  if (fieldPath === "") {
    problems.required(`${path}.fieldPath`);
    return;
  }
  if (apiVersion !== "v1") {
    problems.invalid(
      `${path}.fieldPath`,
      fieldPath,
      `error converting fieldPath: unsupported pod version: ${apiVersion}`,
    );
    return;
  }
  const [, base, subscript] = subscriptPattern.exec(fieldPath) ?? [];
  if (base === undefined || subscript === undefined) {
    const allowed = use === "env" ? envFields : volumeFields;
    if (allowed.includes(fieldPath)) return;
    if (knownFields.has(fieldPath)) problems.unsupported(`${path}.fieldPath`, fieldPath, allowed);
    else notConvertible(fieldPath, path, problems);
    return;
  }
  if (base === "metadata.labels") problems.invalidEach(`${path}.fieldPath`, subscript, qualifiedName(subscript));
  else if (base === "metadata.annotations") {
    problems.invalidEach(`${path}.fieldPath`, subscript, qualifiedName(subscript.toLowerCase()));
  } else if (knownFields.has(base)) problems.invalid(`${path}.fieldPath`, fieldPath, "does not support subscript");
  else notConvertible(fieldPath, path, problems);
}

function notConvertible(fieldPath: string, path: string, problems: ProblemList): void {
  problems.invalid(
    `${path}.fieldPath`,
    fieldPath,
    `error converting fieldPath: field label not supported: ${fieldPath}`,
  );
}

const containerResourceFields: readonly string[] = [
  "limits.cpu",
  "limits.ephemeral-storage",
  "limits.memory",
  "requests.cpu",
  "requests.ephemeral-storage",
  "requests.memory",
];
const cpuDivisors: readonly string[] = ["1m", "1"];
const byteDivisors: readonly string[] = "1 1k 1M 1G 1T 1P 1E 1Ki 1Mi 1Gi 1Ti 1Pi 1Ei".split(" ");

export function checkResourceFieldRef(
  selector: ResourceFieldSelector,
  use: "env" | "volume",
  path: string,
  problems: ProblemList,
): void {
  const { containerName = "", resource, divisor = "0" } = selector;
  const isHugePages = /^(?:limits|requests)\.hugepages-/.test(resource);
  if (use === "volume" && containerName === "") problems.required(`${path}.containerName`);
  else if (resource === "") problems.required(`${path}.resource`);
  else if (!containerResourceFields.includes(resource) && !isHugePages) {
    problems.unsupported(`${path}.resource`, resource, containerResourceFields);
  }
  const unit = canonicalQuantity(divisor);
  if (unit === "0") return;
  const rule = divisorRules.find(({ of }) => of.test(resource));
  if (rule !== undefined && !rule.allowed.includes(unit)) {
    problems.invalid(
      `${path}.divisor`,
      resource,
      `only divisor's values ${rule.allowed.join(rule.allowed.length === 2 ? " and " : ", ")} are supported with the ${rule.name} resource`,
    );
  }
}

const divisorRules = [
  { of: /\.cpu$/, allowed: cpuDivisors, name: "cpu" },
  { of: /\.memory$/, allowed: byteDivisors, name: "memory" },
  { of: /\.ephemeral-storage$/, allowed: byteDivisors, name: "local ephemeral storage" },
  { of: /\.hugepages-/, allowed: byteDivisors, name: "hugepages" },
] as const;
