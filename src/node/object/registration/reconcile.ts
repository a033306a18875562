import { isExtended, isHugePages, type Node, type ResourceList } from "../../../ground/model/index.ts";
import type { DeviceFacts } from "../ports.ts";
import { attachDetachAnnotation } from "./node-object.ts";

/** Labels that the agent knows better than the Node that it finds; all others are left as they are. */
const ownLabels: readonly string[] = [
  "kubernetes.io/hostname",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "node.kubernetes.io/instance-type",
  "beta.kubernetes.io/instance-type",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "node.kubernetes.io/windows-build",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
];

/** A Node that was there before, brought into line with the one we would have made. Taints and spec are not touched. */
export function reconciled(existing: Node, wanted: Node, devices: DeviceFacts): Node {
  const capacity = reconciledResources(existing.status?.capacity, wanted.status?.capacity ?? {}, devices);
  const allocatable = reconciledResources(existing.status?.allocatable, wanted.status?.allocatable ?? {}, devices);
  return {
    ...existing,
    metadata: {
      ...existing.metadata,
      labels: reconciledLabels(existing.metadata?.labels ?? {}, wanted.metadata?.labels ?? {}),
      annotations: reconciledAnnotations(existing.metadata?.annotations ?? {}, wanted.metadata?.annotations ?? {}),
    },
    status: { ...existing.status, capacity, allocatable },
  };
}

type Texts = Readonly<Record<string, string>>;

function reconciledLabels(existing: Texts, wanted: Texts): Texts {
  const labels: Record<string, string> = { ...existing };
  for (const key of ownLabels) {
    const value = wanted[key];
    if (value === undefined) continue;
    if (value === "") delete labels[key];
    else labels[key] = value;
  }
  return labels;
}

function reconciledAnnotations(existing: Texts, wanted: Texts): Texts {
  const { [attachDetachAnnotation]: _, ...others } = existing;
  const value = wanted[attachDetachAnnotation];
  return value === undefined ? others : { ...existing, [attachDetachAnnotation]: value };
}

function reconciledResources(
  existing: ResourceList | undefined,
  wanted: ResourceList,
  devices: DeviceFacts,
): ResourceList {
  if (existing === undefined || Object.keys(existing).length === 0) return wanted;
  const resources: Record<string, string> = {};
  for (const [name, quantity] of Object.entries(existing)) {
    if (isHugePages(name)) continue;
    // Without a memory of devices, none of them is certain until its plugin comes back.
    resources[name] = isExtended(name) && !devices.hasCheckpoint ? "0" : quantity;
  }
  for (const [name, quantity] of Object.entries(wanted)) if (isHugePages(name)) resources[name] = quantity;
  return resources;
}
