import { isObject, listAt, objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";

export type ReferenceKind =
  | "secret"
  | "configmap"
  | "serviceaccount"
  | "persistentvolumeclaim"
  | "persistentvolume"
  | "resourceclaim";

type NameField = readonly [holder: string, name: string];

/** Where in a pod's spec names of other objects stand: the field that holds the reference, and the name's field in it. */
const referenceFields: Partial<Record<ReferenceKind, readonly NameField[]>> = {
  secret: [
    ["secret", "secretName"],
    ["secret", "name"],
    ["secretRef", "name"],
    ["secretKeyRef", "name"],
    ["imagePullSecrets", "name"],
    ["nodePublishSecretRef", "name"],
    ["azureFile", "secretName"],
  ],
  configmap: [
    ["configMap", "name"],
    ["configMapRef", "name"],
    ["configMapKeyRef", "name"],
  ],
  serviceaccount: [["", "serviceAccountName"]],
  persistentvolumeclaim: [["persistentVolumeClaim", "claimName"]],
  resourceclaim: [["resourceClaims", "resourceClaimName"]],
};

type References = Map<ReferenceKind, ReadonlySet<string>>;

/** Stored objects never change, so what one refers to is read once however often it is asked. */
const known = new WeakMap<ApiObject, References>();

/** The names of objects of the kind, in the pod's namespace, that the pod refers to. */
export function referencesOfPod(pod: ApiObject, kind: ReferenceKind): ReadonlySet<string> {
  let references = known.get(pod);
  if (references === undefined) {
    references = new Map();
    known.set(pod, references);
  }
  let names = references.get(kind);
  if (names === undefined) {
    names = readReferences(pod, kind);
    references.set(kind, names);
  }
  return names;
}

function readReferences(pod: ApiObject, kind: ReferenceKind): ReadonlySet<string> {
  const names = namesIn(pod["spec"], referenceFields[kind] ?? []);
  if (kind === "persistentvolumeclaim") {
    // A generic ephemeral volume's claim is named after the pod and the volume.
    for (const volume of listAt(pod, "spec", "volumes")) {
      if (isObject(volume) && volume["ephemeral"] !== undefined)
        names.add(`${pod.metadata.name}-${stringAt(volume, "name")}`);
    }
  }
  if (kind === "resourceclaim") {
    // Claims made from a template have names of their own, which others than the node tell.
    for (const made of listAt(pod, "status", "resourceClaimStatuses")) names.add(stringAt(made, "resourceClaimName"));
    names.add(stringAt(pod, "status", "extendedResourceClaimStatus", "resourceClaimName"));
  }
  names.delete("");
  return names;
}

/** Secrets that the kubelet needs for a volume, each as `namespace/name`. */
export function secretsIn(volume: ApiObject): ReadonlySet<string> {
  const spec = objectAt(volume, "spec");
  const claimNamespace = stringAt(spec, "claimRef", "namespace");
  const secrets = new Set<string>();
  for (const source of Object.values(spec)) {
    for (const holder of ["secretRef", "nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"]) {
      const name = stringAt(source, holder, "name");
      if (name !== "") secrets.add(`${stringAt(source, holder, "namespace") || claimNamespace}/${name}`);
    }
    const name = stringAt(source, "secretName");
    if (name !== "") secrets.add(`${stringAt(source, "secretNamespace") || claimNamespace}/${name}`);
  }
  return secrets;
}

function namesIn(spec: unknown, fields: readonly NameField[]): Set<string> {
  const names = new Set<string>();
  const visit = (value: unknown, holder: string): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, holder);
    else if (isObject(value)) {
      for (const [key, item] of Object.entries(value)) {
        if (typeof item !== "string") visit(item, key);
        else if (fields.some(([field, name]) => field === holder && name === key)) names.add(item);
      }
    }
  };
  visit(spec, "");
  return names;
}
