import { goQuote } from "../base/index.ts";
import type { Container, ResourceFieldSelector } from "./kube/gen/types.ts";
import type { IdentifiedPod } from "./pod.ts";
import { milliUnits, type Nano, parseQuantity, tryParseQuantity, wholeUnits } from "./quantity.ts";
import { amountsOf, isHugePages, type ResourceAmounts } from "./resource-list.ts";

/** What a pod can learn of itself that is not written in its own object. */
export interface PodFacts {
  /** As the status shows them: the node's primary family first. For a pod on the host's network the node's IPs. */
  readonly podIps: readonly string[];
  readonly hostIps: readonly string[];
}

/** Thrown for a field or resource that cannot be handed to a container. */
export class DownwardApiError extends Error {
  override readonly name = "DownwardApiError";
}

/** The text of a field selector such as `metadata.labels['app']`. */
export function podField(pod: IdentifiedPod, fieldPath: string, facts: PodFacts): string {
  const { metadata, spec } = pod;
  switch (fieldPath) {
    case "metadata.name":
      return metadata.name;
    case "metadata.namespace":
      return metadata.namespace;
    case "metadata.uid":
      return metadata.uid;
    case "metadata.labels":
      return formatMap(metadata.labels ?? {});
    case "metadata.annotations":
      return formatMap(metadata.annotations ?? {});
    case "spec.nodeName":
      return spec.nodeName ?? "";
    case "spec.serviceAccountName":
      return spec.serviceAccountName ?? "";
    case "status.hostIP":
    case "status.hostIPs":
      // An empty text would stay in the container's environment for good.
      if (facts.hostIps[0] === undefined) throw new DownwardApiError("the node's addresses are not known yet");
      return fieldPath === "status.hostIP" ? facts.hostIps[0] : facts.hostIps.join(",");
    case "status.podIP":
      return facts.podIps[0] ?? "";
    case "status.podIPs":
      return facts.podIps.join(",");
    default:
      return subscripted(pod, fieldPath);
  }
}

function subscripted(pod: IdentifiedPod, fieldPath: string): string {
  // By hand: a regular expression looks for the end again from every bracket.
  const begin = fieldPath.indexOf("['", 1);
  if (begin < 0 || !fieldPath.endsWith("']") || fieldPath.length < begin + 4) {
    throw new DownwardApiError(`unsupported fieldPath: ${fieldPath}`);
  }
  const [path, key] = [fieldPath.slice(0, begin), fieldPath.slice(begin + 2, -2)];
  if (path === "metadata.labels") return ownText(pod.metadata.labels, key);
  if (path === "metadata.annotations") return ownText(pod.metadata.annotations, key);
  throw new DownwardApiError(`fieldPath ${goQuote(fieldPath)} does not support subscript`);
}

/** Every object has a `constructor`, which may be the name of a label. */
function ownText(texts: Readonly<Record<string, string>> | undefined, key: string): string {
  return texts !== undefined && Object.hasOwn(texts, key) ? (texts[key] ?? "") : "";
}

/** Sorted lines `key="value"`, the form in which volumes show labels and annotations. */
export function formatMap(map: Readonly<Record<string, string>>): string {
  return Object.keys(map)
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .map((key) => `${key}=${goQuote(map[key] ?? "")}`)
    .join("\n");
}

/**
 * The value of a resource selector such as `limits.cpu`, in units of its divisor and rounded up. A limit of cpu,
 * memory or ephemeral storage that the container does not set is the pod's limit, else what the node can give.
 */
export function resourceField(
  pod: IdentifiedPod,
  selector: ResourceFieldSelector,
  current: Container,
  nodeAllocatable: ResourceAmounts,
): string {
  const container = selector.containerName ? containerNamed(pod, selector.containerName) : current;
  const [, side, resource = ""] = /^(limits|requests)\.(.+)$/.exec(selector.resource) ?? [];
  if (side === undefined || !(defaultedLimits.includes(resource) || isHugePages(resource))) {
    throw new DownwardApiError(`unsupported container resource : ${selector.resource}`);
  }
  const declared = amountsOf(container.resources?.[side === "limits" ? "limits" : "requests"]).get(resource) ?? 0n;
  const amount = side === "limits" && declared === 0n ? fallbackLimit(pod, resource, nodeAllocatable) : declared;
  const divisor = (selector.divisor === undefined ? 0n : tryParseQuantity(selector.divisor)) || parseQuantity("1");
  const units = (quantity: Nano): bigint => (resource === "cpu" ? milliUnits(quantity) : wholeUnits(quantity));
  const [dividend, unit] = [units(amount), units(divisor)];
  return String((dividend + unit - 1n) / unit);
}

const defaultedLimits = ["cpu", "memory", "ephemeral-storage"];

function fallbackLimit(pod: IdentifiedPod, resource: string, nodeAllocatable: ResourceAmounts): Nano {
  if (!defaultedLimits.includes(resource)) return 0n;
  const podLevel = resource === "ephemeral-storage" ? 0n : amountsOf(pod.spec.resources?.limits).get(resource);
  return podLevel || (nodeAllocatable.get(resource) ?? 0n);
}

function containerNamed(pod: IdentifiedPod, name: string): Container {
  const found = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((one) => one.name === name);
  if (found === undefined) throw new DownwardApiError(`container ${name} not found`);
  return found;
}
