import type { Pod } from "../../model/index.ts";
import { persistentVolumeClaims, pods, serviceAccounts } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import type { User } from "../rest/world.ts";
import { parseFieldRequirements } from "../selectors/field-selector.ts";
import type { Store } from "../store/store.ts";
import type { Attributes, Decision } from "./authorize.ts";

type ResourceAttributes = Attributes & { readonly type: "resource" };

const prefix = "system:node:";
const readVerbs = ["get", "list", "watch"];

/** What nodes may do whatever their name. */
const anyNode: Readonly<Record<string, readonly string[]>> = {
  "tokenreviews.authentication.k8s.io": ["create"],
  "subjectaccessreviews.authorization.k8s.io": ["create"],
  "localsubjectaccessreviews.authorization.k8s.io": ["create"],
  services: readVerbs,
  events: ["create", "patch", "update"],
  "events.events.k8s.io": ["create", "patch", "update"],
  "certificatesigningrequests.certificates.k8s.io": ["create", ...readVerbs],
  "runtimeclasses.node.k8s.io": readVerbs,
  "csidrivers.storage.k8s.io": readVerbs,
  "volumeattachments.storage.k8s.io": ["get"],
  nodes: ["create"],
  pods: ["create", "delete"],
  "pods/status": ["patch", "update"],
  "pods/eviction": ["create"],
  "nodes/status": ["patch", "update"],
  "persistentvolumeclaims/status": ["get", "patch", "update"],
  "deviceclasses.resource.k8s.io": readVerbs,
};

/** Nodes may see and change what is theirs: their Node, their lease, their pods and what those refer to. */
export class NodeAuthorizer {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  decide(user: User, attributes: Attributes): Decision {
    if (!user.groups.includes("system:nodes") || !user.name.startsWith(prefix)) return { allowed: false, reason: "" };
    if (attributes.type === "path") return { allowed: false, reason: "" };
    const reason = this.#refusal(user.name.slice(prefix.length), attributes);
    return { allowed: reason === undefined, reason: reason ?? "" };
  }

  /** Why the node may not, or undefined when it may. */
  #refusal(node: string, attributes: ResourceAttributes): string | undefined {
    const { verb, name, namespace, fieldSelector } = attributes;
    const resource = resourceName(attributes);
    if (anyNode[resource]?.includes(verb) === true) return undefined;
    const isRead = readVerbs.includes(verb);
    switch (resource) {
      case "nodes":
        if (!isRead && !["patch", "update"].includes(verb)) return "";
        if (name === node || requires(fieldSelector, "metadata.name", node)) return undefined;
        return `node '${node}' cannot read ${name === "" ? "all nodes" : `'${name}'`}, only its own Node object`;
      case "pods":
        if (verb === "get") return this.#runsOn(node, namespace, name) ? undefined : noRelationship(node);
        if (isRead && requires(fieldSelector, "spec.nodeName", node)) return undefined;
        return isRead ? "can only list/watch pods with spec.nodeName field selector" : "";
      case "leases.coordination.k8s.io":
        if (namespace !== "kube-node-lease") return `can only access leases in the "kube-node-lease" system namespace`;
        if (verb === "list" || verb === "watch") return "can only get, create, update, patch, or delete a node lease";
        return name === node || verb === "create"
          ? undefined
          : "can only access node lease with the same name as the requesting node";
      case "csinodes.storage.k8s.io":
        return name === node || verb === "create"
          ? undefined
          : "can only access CSINode with the same name as the requesting node";
      case "serviceaccounts/token":
        return this.#refersTo(node, namespace, "serviceaccount", name) ? undefined : noRelationship(node);
      case "serviceaccounts":
        if (verb !== "get") return "can only create tokens for individual service accounts";
        return this.#refersTo(node, namespace, "serviceaccount", name) ? undefined : noRelationship(node);
      case "resourceslices.resource.k8s.io":
        if (["create", "update", "patch", "delete", "get"].includes(verb)) return undefined;
        return requires(fieldSelector, "spec.nodeName", node)
          ? undefined
          : "can only list/watch/deletecollection resourceslices with spec.nodeName field selector";
      case "secrets":
      case "configmaps":
      case "persistentvolumeclaims":
      case "persistentvolumes":
      case "resourceclaims.resource.k8s.io": {
        if (!isRead) return "";
        const chosen = name || nameIn(fieldSelector);
        if (chosen === "") return "No Object name found";
        const kind = referenceKinds[resource] ?? "";
        return this.#refersTo(node, namespace, kind, chosen) ? undefined : noRelationship(node);
      }
      default:
        return "";
    }
  }

  #runsOn(node: string, namespace: string, name: string): boolean {
    const pod = this.#store.get(pods.storage, keyOf(namespace, name));
    return pod !== undefined && asPod(pod).spec?.nodeName === node;
  }

  /** Whether a pod of the node refers to the object. */
  #refersTo(node: string, namespace: string, kind: string, name: string): boolean {
    for (const object of this.#store.list(pods.storage)) {
      const pod = asPod(object);
      if (pod.spec?.nodeName !== node) continue;
      if (kind === "persistentvolume") {
        if (this.#volumesOf(pod).includes(name)) return true;
      } else if (pod.metadata?.namespace === namespace && this.#referencesOf(pod, kind).includes(name)) return true;
    }
    return false;
  }

  #referencesOf(pod: Pod, kind: string): readonly string[] {
    const found = referencesIn(pod.spec, kind);
    if (kind === "serviceaccount") return [pod.spec?.serviceAccountName ?? ""];
    if (kind === "secret") return [...found, ...this.#secretsOfAccount(pod), ...this.#secretsOfVolumes(pod)];
    if (kind !== "persistentvolumeclaim") return found;
    // A generic ephemeral volume's claim is named after the pod and the volume.
    const ephemeral = (pod.spec?.volumes ?? []).filter((volume) => volume.ephemeral !== undefined);
    return [...found, ...ephemeral.map((volume) => `${pod.metadata?.name}-${volume.name}`)];
  }

  #secretsOfAccount({ metadata, spec }: Pod): readonly string[] {
    const key = keyOf(metadata?.namespace ?? "", spec?.serviceAccountName ?? "");
    return referencesIn(this.#store.get(serviceAccounts.storage, key)?.["imagePullSecrets"], "secret-list");
  }

  #volumesOf(pod: Pod): readonly string[] {
    return this.#referencesOf(pod, "persistentvolumeclaim").flatMap((claim) => {
      const found = this.#store.get(persistentVolumeClaims.storage, keyOf(pod.metadata?.namespace ?? "", claim));
      const spec = found?.["spec"] as { readonly volumeName?: string } | undefined;
      return spec?.volumeName === undefined ? [] : [spec.volumeName];
    });
  }

  #secretsOfVolumes(pod: Pod): readonly string[] {
    return this.#volumesOf(pod).flatMap((name) =>
      referencesIn(this.#store.get("persistentvolumes", name)?.["spec"], "secret"),
    );
  }
}

const asPod = (object: ApiObject): Pod => object as unknown as Pod;

const referenceKinds: Readonly<Record<string, string>> = {
  secrets: "secret",
  configmaps: "configmap",
  persistentvolumeclaims: "persistentvolumeclaim",
  persistentvolumes: "persistentvolume",
  "resourceclaims.resource.k8s.io": "resourceclaim",
};

function resourceName({ resource, group, subresource }: ResourceAttributes): string {
  return `${resource}${group === "" ? "" : `.${group}`}${subresource === "" ? "" : `/${subresource}`}`;
}

function noRelationship(node: string): string {
  return `no relationship found between node '${node}' and this object`;
}

function requires(fieldSelector: string, field: string, value: string): boolean {
  return parseFieldRequirements(fieldSelector).some(
    (requirement) => requirement.field === field && requirement.operator === "=" && requirement.value === value,
  );
}

function nameIn(fieldSelector: string): string {
  const found = parseFieldRequirements(fieldSelector).find(
    ({ field, operator }) => field === "metadata.name" && operator === "=",
  );
  return found?.value ?? "";
}

/** Where in a spec names of other objects stand: the field that holds the reference, and the name's field in it. */
const referenceFields: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  secret: [
    ["secret", "secretName"],
    ["secret", "name"],
    ["secretRef", "name"],
    ["secretKeyRef", "name"],
    ["imagePullSecrets", "name"],
    ["nodePublishSecretRef", "name"],
    ["nodeStageSecretRef", "name"],
    ["nodeExpandSecretRef", "name"],
  ],
  "secret-list": [["", "name"]],
  configmap: [
    ["configMap", "name"],
    ["configMapRef", "name"],
    ["configMapKeyRef", "name"],
  ],
  persistentvolumeclaim: [["persistentVolumeClaim", "claimName"]],
  resourceclaim: [["resourceClaims", "resourceClaimName"]],
};

function referencesIn(spec: unknown, kind: string): readonly string[] {
  const fields = referenceFields[kind] ?? [];
  const names: string[] = [];
  const visit = (value: unknown, holder: string): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, holder);
    else if (typeof value === "object" && value !== null) {
      for (const [key, item] of Object.entries(value)) {
        if (typeof item === "string" && fields.some(([field, name]) => field === holder && name === key))
          names.push(item);
        else visit(item, key);
      }
    }
  };
  visit(spec, "");
  return names;
}
