import { apiReferences, configMirrorAnnotation, jsonEqual, type PodSpec } from "../../../ground/model/index.ts";
import { listAt, objectAt, stringAt } from "../json.ts";
import { nodes, persistentVolumeClaims, pods, resourceSlices } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { User, World } from "../rest/world.ts";
import { forbidden } from "../status-error.ts";

/** The node's name when a node is calling. */
export function nodeOf(user: User): string | undefined {
  const prefix = "system:node:";
  return user.groups.includes("system:nodes") && user.name.startsWith(prefix)
    ? user.name.slice(prefix.length)
    : undefined;
}

/** A node creates no pods but mirrors of those it runs anyway, and those refer to nothing. */
export function nodeMayCreate(pod: ApiObject, user: User, world: World): void {
  const node = nodeOf(user);
  if (node === undefined) return;
  const refuse = (why: string): never => {
    throw forbidden(pods, pod.metadata.name ?? "", why);
  };
  if (pod.metadata.annotations?.[configMirrorAnnotation] === undefined) {
    refuse(`pod does not have "${configMirrorAnnotation}" annotation, node "${node}" can only create mirror pods`);
  }
  const spec = objectAt(pod, "spec");
  if (spec["nodeName"] !== node) refuse(`node "${node}" can only create pods with spec.nodeName set to itself`);
  const [owner, ...others] = pod.metadata.ownerReferences ?? [];
  const { apiVersion, kind, name, uid, controller, blockOwnerDeletion } = owner ?? {};
  if (others.length > 0 || apiVersion !== "v1" || kind !== "Node" || name !== node) {
    refuse(`node "${node}" can only create pods with an owner reference set to itself`);
  }
  if (controller !== true)
    refuse(`node "${node}" can only create pods with a controller owner reference set to itself`);
  if (blockOwnerDeletion === true) refuse(`node "${node}" must not set blockOwnerDeletion on an owner reference`);
  const found = world.store.get(nodes.storage, node);
  if (uid !== found?.metadata.uid) {
    refuse(`node ${node} UID mismatch: expected ${found?.metadata.uid ?? ""} got ${uid ?? ""}`);
  }
  const [reference] = apiReferences(spec as unknown as PodSpec);
  if (reference !== undefined) refuse(`node "${node}" can not create pods that reference ${reference.resource}`);
}

const touches = {
  status: (node: string) => `node "${node}" can only update pod status for`,
  delete: (node: string) => `node "${node}" can only delete`,
  evict: (node: string) => `node ${node} can only evict`,
} as const;

export function nodeMayTouchPod(pod: ApiObject, user: User, touch: keyof typeof touches): void {
  const node = nodeOf(user);
  if (node === undefined || stringAt(pod, "spec", "nodeName") === node) return;
  const why = `${touches[touch](node)} pods with spec.nodeName set to itself`;
  throw forbidden(pods, pod.metadata.name ?? "", why);
}

/** What would draw the pod to others, or give the node leave to read more than the pod's own claims. */
const statusOfOthers = ["resourceClaimStatuses", "extendedResourceClaimStatus"];

/** A node tells how its pods are; what they are and which claims are theirs is not its to say. */
export function nodeMayReport(pod: ApiObject, old: ApiObject, user: User): void {
  const node = nodeOf(user);
  if (node === undefined) return;
  const refuse = (why: string): never => {
    throw forbidden(pods, old.metadata.name ?? "", `node "${node}" cannot update ${why}`);
  };
  if (!jsonEqual(pod.metadata.labels ?? {}, old.metadata.labels ?? {})) refuse("labels through pod status");
  for (const field of statusOfOthers) {
    if (!jsonEqual(objectAt(pod, "status")[field], objectAt(old, "status")[field])) refuse(`status.${field}`);
  }
}

const claimStatusOfNodes = ["capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"];

/** A node tells how large it made the volume of a claim, and nothing else about the claim. */
export function nodeMayReportClaim(claim: ApiObject, old: ApiObject, user: User): void {
  const node = nodeOf(user);
  if (node === undefined || jsonEqual(withoutReport(claim), withoutReport(old))) return;
  const why = `node "${node}" is not allowed to update fields other than status.quantity and status.conditions`;
  throw forbidden(persistentVolumeClaims, old.metadata.name ?? "", why);
}

function withoutReport(claim: ApiObject): object {
  const { resourceVersion, managedFields, ...metadata } = claim.metadata;
  const status = Object.entries(objectAt(claim, "status")).filter(([field]) => !claimStatusOfNodes.includes(field));
  return { ...claim, metadata, status: Object.fromEntries(status) };
}

/** A node announces and withdraws devices of its own alone. */
export function nodeMayWriteSlice(slice: ApiObject, user: User, touch: "create" | "update" | "delete"): void {
  const node = nodeOf(user);
  if (node === undefined || stringAt(slice, "spec", "nodeName") === node) return;
  const why = `can only ${touch} ResourceSlice with the same NodeName as the requesting node`;
  throw forbidden(resourceSlices, slice.metadata.name ?? "", why);
}

const kubernetesLabels = new Set([
  "kubernetes.io/hostname",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
  "beta.kubernetes.io/instance-type",
  "node.kubernetes.io/instance-type",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
]);

/** A node registers and changes itself alone, and gives itself no label or taint that would draw or shed pods. */
export function nodeMayWriteNode(node: ApiObject, old: ApiObject | undefined, user: User): void {
  const caller = nodeOf(user);
  if (caller === undefined) return;
  const name = node.metadata.name ?? "";
  const refuse = (why: string): never => {
    throw forbidden(nodes, name, why);
  };
  if (name !== caller) refuse(`node "${caller}" is not allowed to modify node "${name}"`);
  const changed = changedLabels(node.metadata.labels ?? {}, old?.metadata.labels ?? {}).filter(isForbiddenLabel);
  if (changed.length > 0)
    refuse(`is not allowed to ${old === undefined ? "set" : "modify"} labels: ${changed.sort().join(", ")}`);
  if (old === undefined) return;
  if (!jsonEqual(listAt(node, "spec", "taints"), listAt(old, "spec", "taints"))) {
    refuse(`node "${caller}" is not allowed to modify taints`);
  }
  if (!jsonEqual(node.metadata.ownerReferences ?? [], old.metadata.ownerReferences ?? [])) {
    refuse(`node "${caller}" is not allowed to modify ownerReferences`);
  }
}

type Labels = Readonly<Record<string, string>>;

function changedLabels(labels: Labels, old: Labels): string[] {
  return [...new Set([...Object.keys(labels), ...Object.keys(old)])].filter((key) => labels[key] !== old[key]);
}

function isForbiddenLabel(key: string): boolean {
  const [namespace = ""] = key.includes("/") ? key.split("/") : [""];
  const isIn = (domain: string): boolean => namespace === domain || namespace.endsWith(`.${domain}`);
  if (isIn("node-restriction.kubernetes.io")) return true;
  if (!isIn("kubernetes.io") && !isIn("k8s.io")) return false;
  return !kubernetesLabels.has(key) && !isIn("kubelet.kubernetes.io") && !isIn("node.kubernetes.io");
}
