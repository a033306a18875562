import type { Quantity, ResourceRequirements } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { tryParseQuantity, wholeUnits } from "../quantity.ts";
import { canonicalQuantity } from "../quantity-format.ts";
import { isHugePages } from "../resource-list.ts";
import { dnsLabel, qualifiedName } from "./names.ts";

type ResourceList = Readonly<Record<string, Quantity>>;
type CheckName = (name: string, path: string, problems: ProblemList) => void;

/** Names without a domain that the API knows at all. */
const standardResources: ReadonlySet<string> = new Set([
  "cpu",
  "memory",
  "ephemeral-storage",
  "requests.cpu",
  "requests.memory",
  "requests.ephemeral-storage",
  "limits.cpu",
  "limits.memory",
  "limits.ephemeral-storage",
  "pods",
  "resourcequotas",
  "services",
  "replicationcontrollers",
  "secrets",
  "persistentvolumeclaims",
  "configmaps",
  "services.nodeports",
  "services.loadbalancers",
  "storage",
  "requests.storage",
]);
const containerResources: ReadonlySet<string> = new Set(["cpu", "memory", "ephemeral-storage"]);
const podLevelResources: readonly string[] = ["cpu", "memory"];

const isNative = (name: string): boolean => !name.includes("/") || name.includes("kubernetes.io/");
/** More may be promised than there is; huge pages and devices are handed out exactly. */
const mayOvercommit = (name: string): boolean => isNative(name) && !isHugePages(name);

function isExtended(name: string): boolean {
  return !isNative(name) && !name.startsWith("requests.") && qualifiedName(`requests.${name}`).length === 0;
}

export function checkContainerResources(
  resources: ResourceRequirements | undefined,
  claimNames: ReadonlySet<string>,
  path: string,
  problems: ProblemList,
): void {
  if (resources === undefined) return;
  checkRequirements(resources, checkContainerResourceName, path, problems);
  checkClaims(resources, claimNames, `${path}.claims`, problems);
}

export function checkOverhead(overhead: ResourceList | undefined, path: string, problems: ProblemList): void {
  for (const [name, quantity] of Object.entries(overhead ?? {})) {
    checkContainerResourceName(name, `${path}[${name}]`, problems);
    checkAmount(name, quantity, `${path}[${name}]`, problems);
  }
}

export function checkPodLevelResources(
  resources: ResourceRequirements | undefined,
  path: string,
  problems: ProblemList,
): void {
  if (resources === undefined) return;
  if (resources.claims !== undefined) {
    problems.forbidden(`${path}.claims`, "claims may not be set for Resources at pod-level");
  }
  checkRequirements(resources, checkPodResourceName, path, problems);
}

function checkRequirements(
  { limits = {}, requests = {} }: ResourceRequirements,
  checkName: CheckName,
  path: string,
  problems: ProblemList,
): void {
  for (const [name, quantity] of Object.entries(limits)) {
    checkName(name, `${path}.limits[${name}]`, problems);
    checkAmount(name, quantity, `${path}.limits[${name}]`, problems);
  }
  for (const [name, quantity] of Object.entries(requests)) {
    const at = `${path}.requests[${name}]`;
    checkName(name, at, problems);
    checkAmount(name, quantity, at, problems);
    checkAgainstLimit(name, quantity, limits[name], path, problems);
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePages) && !names.includes("cpu") && !names.includes("memory")) {
    problems.forbidden(path, "HugePages require cpu or memory");
  }
}

function checkAgainstLimit(
  name: string,
  request: Quantity,
  limit: Quantity | undefined,
  path: string,
  problems: ProblemList,
): void {
  const at = `${path}.requests`;
  if (limit === undefined) {
    if (!mayOvercommit(name)) {
      problems.required(`${path}.limits`, `Limit must be set for non overcommitable resources (${name})`);
    }
    return;
  }
  const requested = tryParseQuantity(request);
  const limited = tryParseQuantity(limit);
  if (requested === undefined || limited === undefined) return;
  if (requested !== limited && !mayOvercommit(name)) {
    problems.invalid(at, canonicalQuantity(request), `must be equal to ${name} limit of ${canonicalQuantity(limit)}`);
  } else if (requested > limited) {
    problems.invalid(
      at,
      canonicalQuantity(request),
      `must be less than or equal to ${name} limit of ${canonicalQuantity(limit)}`,
    );
  }
}

function checkAmount(name: string, text: Quantity, path: string, problems: ProblemList): void {
  const quantity = tryParseQuantity(text);
  if (quantity === undefined) {
    problems.invalid(path, text, "must be a valid resource quantity");
    return;
  }
  if (quantity < 0n) problems.invalid(path, canonicalQuantity(text), "must be greater than or equal to 0");
  if (isExtended(name) && quantity % 1_000_000_000n !== 0n) {
    problems.invalid(path, canonicalQuantity(text), "must be an integer");
  }
  if (!isHugePages(name)) return;
  const pageSize = tryParseQuantity(name.slice("hugepages-".length));
  const isMultiple = pageSize !== undefined && pageSize > 0n && wholeUnits(quantity) % wholeUnits(pageSize) === 0n;
  if (!isMultiple) {
    problems.invalid(
      path,
      canonicalQuantity(text),
      `${canonicalQuantity(text)} is not positive integer multiple of ${name}`,
    );
  }
}

function checkContainerResourceName(name: string, path: string, problems: ProblemList): void {
  if (!checkResourceName(name, path, problems)) return;
  if (!name.includes("/")) {
    if (!containerResources.has(name) && !isHugePages(name)) {
      problems.invalid(path, name, "must be a standard resource for containers");
    }
  } else if (!isNative(name) && !isExtended(name)) {
    problems.invalid(path, name, "doesn't follow extended resource name standard");
  }
}

function checkPodResourceName(name: string, path: string, problems: ProblemList): void {
  if (!checkResourceName(name, path, problems)) return;
  if (!podLevelResources.includes(name) && !isHugePages(name)) {
    problems.unsupported(path, name, [...podLevelResources, "hugepages-<size>"]);
  }
}

/** True when the name is well formed and further checks make sense. */
function checkResourceName(name: string, path: string, problems: ProblemList): boolean {
  const details = qualifiedName(name);
  problems.invalidEach(path, name, details);
  if (details.length > 0) return false;
  if (name.includes("/") || standardResources.has(name) || isHugePages(name)) return true;
  problems.invalid(path, name, "must be a standard resource type or fully qualified");
  return false;
}

function checkClaims(
  { claims = [] }: ResourceRequirements,
  claimNames: ReadonlySet<string>,
  path: string,
  problems: ProblemList,
): void {
  const wholes = new Set<string>();
  const parts = new Set<string>();
  for (const [index, { name, request = "" }] of claims.entries()) {
    const at = `${path}[${index}]`;
    if (name === "") {
      problems.required(at);
      continue;
    }
    const part = `${name}/${request}`;
    if (request !== "") problems.invalidEach(`${at}.request`, request, dnsLabel(request));
    const overlaps = [...parts].some((other) => other.startsWith(`${name}/`));
    if (wholes.has(name) || (request === "" && overlaps)) problems.duplicate(at, name);
    else if (parts.has(part)) problems.duplicate(at, part);
    if (request === "") wholes.add(name);
    else parts.add(part);
    if (claimNames.has(name)) continue;
    const known = claimNames.size === 0 ? " which is empty" : `: ${[...claimNames].sort().join(", ")}`;
    problems.notFound(at, name, `must be one of the names in pod.spec.resourceClaims${known}`);
  }
}
