import { table } from "../../../ground/base/index.ts";
import { configMirrorAnnotation, type Pod } from "../../../ground/model/index.ts";
import { stringAt } from "../json.ts";
import {
  type Kind,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  resourceSlices,
  serviceAccounts,
  volumeAttachments,
} from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import type { User } from "../rest/world.ts";
import { parseFieldRequirements } from "../selectors/field-selector.ts";
import type { Store } from "../store/store.ts";
import type { Attributes, Decision } from "./authorize.ts";
import { type ReferenceKind, referencesOfPod, secretsIn } from "./pod-references.ts";

type ResourceAttributes = Attributes & { readonly type: "resource" };

const prefix = "system:node:";
const readVerbs = ["get", "list", "watch"];
const ownObjectVerbs = ["get", "create", "update", "patch", "delete"];

/** What nodes may do whatever their name; where an object is written, admission sees to it that it is the node's own. */
const anyNode: Readonly<Record<string, readonly string[]>> = table({
  "tokenreviews.authentication.k8s.io": ["create"],
  "subjectaccessreviews.authorization.k8s.io": ["create"],
  "localsubjectaccessreviews.authorization.k8s.io": ["create"],
  services: readVerbs,
  events: ["create", "patch", "update"],
  "events.events.k8s.io": ["create", "patch", "update"],
  "certificatesigningrequests.certificates.k8s.io": ["create", ...readVerbs],
  "runtimeclasses.node.k8s.io": readVerbs,
  "csidrivers.storage.k8s.io": readVerbs,
  nodes: ["create", "patch", "update"],
  "nodes/status": ["patch", "update"],
  pods: ["create", "delete"],
  "pods/status": ["patch", "update"],
  "pods/eviction": ["create"],
  "deviceclasses.resource.k8s.io": readVerbs,
});

/** Nodes may see and change what is theirs: their Node, their lease, their pods and what those refer to. */
export class NodeAuthorizer {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  decide(user: User, attributes: Attributes): Decision {
    if (!user.groups.includes("system:nodes") || !user.name.startsWith(prefix)) return { allowed: false, reason: "" };
    const node = user.name.slice(prefix.length);
    if (attributes.type === "path" || node === "") return { allowed: false, reason: "" };
    const reason = this.#refusal(node, attributes);
    return { allowed: reason === undefined, reason: reason ?? "" };
  }

  /** Why the node may not, or undefined when it may. */
  #refusal(node: string, attributes: ResourceAttributes): string | undefined {
    const { verb, name, namespace } = attributes;
    const resource = resourceName(attributes);
    if (Object.hasOwn(anyNode, resource) && anyNode[resource]?.includes(verb) === true) return undefined;
    const related = (kind: ReferenceKind): string | undefined => {
      if (name === "") return "No Object name found";
      return this.#refersTo(node, namespace, kind, name) ? undefined : noRelationship(node);
    };
    const onlyGet = (refusal: () => string | undefined): string | undefined =>
      verb === "get" ? refusal() : "can only get individual resources of this type";
    switch (resource) {
      case "nodes":
        if (!readVerbs.includes(verb)) return "";
        if (name === node) return undefined;
        return `node '${node}' cannot read ${name === "" ? "all nodes" : `'${name}'`}, only its own Node object`;
      case "pods":
        if (!readVerbs.includes(verb)) return "";
        // A selector says what a list or a watch shows; a get shows what it names, whatever it is asked beside that.
        if (verb !== "get" && requires(attributes, "spec.nodeName", node)) return undefined;
        if (name === "") return "can only list/watch pods with spec.nodeName field selector";
        return this.#isOf(node, pods, keyOf(namespace, name)) ? undefined : noRelationship(node);
      case "leases.coordination.k8s.io":
        if (!ownObjectVerbs.includes(verb)) return "can only get, create, update, patch, or delete a node lease";
        if (namespace !== "kube-node-lease") return `can only access leases in the "kube-node-lease" system namespace`;
        return name === node || verb === "create"
          ? undefined
          : "can only access node lease with the same name as the requesting node";
      case "csinodes.storage.k8s.io":
        if (!ownObjectVerbs.includes(verb)) return "can only get, create, update, patch, or delete a CSINode";
        return name === node || verb === "create"
          ? undefined
          : "can only access CSINode with the same name as the requesting node";
      case "serviceaccounts/token":
        return verb === "create" ? related("serviceaccount") : "can only create tokens for individual service accounts";
      case "serviceaccounts":
        return verb === "get" ? related("serviceaccount") : "can only create tokens for individual service accounts";
      case "resourceslices.resource.k8s.io":
        if (verb === "create") return undefined;
        if (ownObjectVerbs.includes(verb)) {
          return this.#isOf(node, resourceSlices, name) ? undefined : noRelationship(node);
        }
        if (!["list", "watch", "deletecollection"].includes(verb)) return "";
        return requires(attributes, "spec.nodeName", node)
          ? undefined
          : "can only list/watch/deletecollection resourceslices with nodeName field selector";
      case "secrets":
      case "configmaps":
        if (!readVerbs.includes(verb)) return "can only read resources of this type";
        if (namespace === "") return "can only read namespaced object of this type";
        return related(resource === "secrets" ? "secret" : "configmap");
      case "persistentvolumeclaims/status":
        return verb === "update" || verb === "patch"
          ? related("persistentvolumeclaim")
          : "can only get/update/patch this type";
      case "persistentvolumeclaims":
        return onlyGet(() => related("persistentvolumeclaim"));
      case "persistentvolumes":
        return onlyGet(() => related("persistentvolume"));
      case "resourceclaims.resource.k8s.io":
        return onlyGet(() => related("resourceclaim"));
      case "volumeattachments.storage.k8s.io":
        return onlyGet(() => (this.#isOf(node, volumeAttachments, name) ? undefined : noRelationship(node)));
      default:
        return "";
    }
  }

  /** Whether the object is one that names the node as its own. */
  #isOf(node: string, kind: Kind, key: string): boolean {
    const object = this.#store.get(kind.storage, key);
    return object !== undefined && stringAt(object, "spec", "nodeName") === node;
  }

  /** Whether a pod of the node refers to the object. */
  #refersTo(node: string, namespace: string, kind: ReferenceKind, name: string): boolean {
    for (const object of this.#store.each(pods.storage)) {
      const pod = object as unknown as Pod;
      if (pod.spec?.nodeName !== node || isMirror(object)) continue;
      if (this.#doesRefer(object, kind, namespace, name)) return true;
    }
    return false;
  }

  #doesRefer(pod: ApiObject, kind: ReferenceKind, namespace: string, name: string): boolean {
    if (kind === "persistentvolume") return this.#volumesOf(pod).some((volume) => volume.metadata.name === name);
    if (pod.metadata.namespace === namespace) {
      if (referencesOfPod(pod, kind).has(name)) return true;
      if (kind === "secret" && this.#pullSecretsOf(pod).includes(name)) return true;
    }
    return kind === "secret" && this.#volumesOf(pod).some((volume) => secretsIn(volume).has(`${namespace}/${name}`));
  }

  #pullSecretsOf(pod: ApiObject): readonly string[] {
    const key = keyOf(pod.metadata.namespace ?? "", stringAt(pod, "spec", "serviceAccountName"));
    const account = this.#store.get(serviceAccounts.storage, key);
    const secrets = (account?.["imagePullSecrets"] ?? []) as readonly { readonly name?: string }[];
    return secrets.map((secret) => secret.name ?? "");
  }

  /** The volumes behind the pod's claims; a claim has one only when the volume says so too. */
  #volumesOf(pod: ApiObject): readonly ApiObject[] {
    const { namespace = "" } = pod.metadata;
    return [...referencesOfPod(pod, "persistentvolumeclaim")].flatMap((claim) => {
      const found = this.#store.get(persistentVolumeClaims.storage, keyOf(namespace, claim));
      const volume = this.#store.get(persistentVolumes.storage, stringAt(found, "spec", "volumeName"));
      const isBound =
        stringAt(volume, "spec", "claimRef", "name") === claim &&
        stringAt(volume, "spec", "claimRef", "namespace") === namespace;
      return volume !== undefined && isBound ? [volume] : [];
    });
  }
}

/** A node makes mirror pods itself, so that they give it leave to nothing. */
function isMirror({ metadata }: ApiObject): boolean {
  return metadata.annotations?.[configMirrorAnnotation] !== undefined;
}

function resourceName({ resource, group, subresource }: ResourceAttributes): string {
  return `${resource}${group === "" ? "" : `.${group}`}${subresource === "" ? "" : `/${subresource}`}`;
}

function noRelationship(node: string): string {
  return `no relationship found between node '${node}' and this object`;
}

function requires({ fieldSelector }: ResourceAttributes, field: string, value: string): boolean {
  return parseFieldRequirements(fieldSelector).some(
    (requirement) => requirement.field === field && requirement.operator === "=" && requirement.value === value,
  );
}
