import { objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import { define, type Kind, type Subresource } from "./kind.ts";

const at =
  (...path: readonly string[]) =>
  (object: ApiObject): string =>
    stringAt(object, ...path);

const status = (kind: string): Subresource => ({ name: "status", kind, verbs: ["get", "patch", "update"] });
const stream = (name: string, kind: string): Subresource => ({ name, kind, verbs: ["create", "get"] });

const podSubresources: readonly Subresource[] = [
  stream("attach", "PodAttachOptions"),
  { name: "binding", kind: "Binding", verbs: ["create"] },
  { name: "ephemeralcontainers", kind: "Pod", verbs: ["get", "patch", "update"] },
  { name: "eviction", kind: "Eviction", group: "policy", version: "v1", verbs: ["create"] },
  stream("exec", "PodExecOptions"),
  { name: "log", kind: "Pod", verbs: ["get"] },
  stream("portforward", "PodPortForwardOptions"),
  { name: "proxy", kind: "PodProxyOptions", verbs: ["create", "delete", "get", "patch", "update"] },
  { name: "resize", kind: "Pod", verbs: ["get", "patch", "update"] },
  status("Pod"),
];

export const pods: Kind = define({
  group: "",
  kind: "Pod",
  plural: "pods",
  shortNames: ["po"],
  categories: ["all"],
  hasStatus: true,
  countsGenerations: true,
  returnsDeleted: true,
  selectable: {
    "spec.nodeName": at("spec", "nodeName"),
    "spec.restartPolicy": at("spec", "restartPolicy"),
    "spec.schedulerName": at("spec", "schedulerName"),
    "spec.serviceAccountName": at("spec", "serviceAccountName"),
    "status.phase": at("status", "phase"),
    "status.podIP": at("status", "podIP"),
    "status.nominatedNodeName": at("status", "nominatedNodeName"),
  },
  subresources: podSubresources,
});

export const nodes: Kind = define({
  group: "",
  kind: "Node",
  plural: "nodes",
  shortNames: ["no"],
  namespaced: false,
  hasStatus: true,
  statusOnCreate: "kept",
  selectable: { "spec.unschedulable": (node) => String(objectAt(node, "spec")["unschedulable"] === true) },
  subresources: [
    { name: "proxy", kind: "NodeProxyOptions", verbs: ["create", "delete", "get", "patch", "update"] },
    status("Node"),
  ],
});

export const namespaces: Kind = define({
  group: "",
  kind: "Namespace",
  plural: "namespaces",
  shortNames: ["ns"],
  namespaced: false,
  hasStatus: true,
  selectable: { "status.phase": at("status", "phase") },
  subresources: [{ name: "finalize", kind: "Namespace", verbs: ["update"] }, status("Namespace")],
});

export const serviceAccounts: Kind = define({
  group: "",
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  shortNames: ["sa"],
  returnsDeleted: true,
  subresources: [
    { name: "token", kind: "TokenRequest", group: "authentication.k8s.io", version: "v1", verbs: ["create"] },
  ],
});

export const configMaps: Kind = define({ group: "", kind: "ConfigMap", plural: "configmaps", shortNames: ["cm"] });

export const secrets: Kind = define({
  group: "",
  kind: "Secret",
  plural: "secrets",
  selectable: { type: at("type") },
});

export const events: Kind = define({
  group: "",
  kind: "Event",
  plural: "events",
  shortNames: ["ev"],
  createsOnUpdate: true,
  selectable: {
    "involvedObject.kind": at("involvedObject", "kind"),
    "involvedObject.namespace": at("involvedObject", "namespace"),
    "involvedObject.name": at("involvedObject", "name"),
    "involvedObject.uid": at("involvedObject", "uid"),
    "involvedObject.apiVersion": at("involvedObject", "apiVersion"),
    "involvedObject.resourceVersion": at("involvedObject", "resourceVersion"),
    "involvedObject.fieldPath": at("involvedObject", "fieldPath"),
    reason: at("reason"),
    reportingComponent: at("reportingComponent"),
    source: at("source", "component"),
    type: at("type"),
  },
});

const services = define({
  group: "",
  kind: "Service",
  plural: "services",
  shortNames: ["svc"],
  categories: ["all"],
  hasStatus: true,
  createsOnUpdate: true,
  returnsDeleted: true,
  selectable: { "spec.clusterIP": at("spec", "clusterIP"), "spec.type": at("spec", "type") },
  subresources: [status("Service")],
});

const endpoints = define({
  group: "",
  kind: "Endpoints",
  plural: "endpoints",
  shortNames: ["ep"],
  createsOnUpdate: true,
});

export const persistentVolumes: Kind = define({
  group: "",
  kind: "PersistentVolume",
  plural: "persistentvolumes",
  shortNames: ["pv"],
  namespaced: false,
  hasStatus: true,
  returnsDeleted: true,
  subresources: [status("PersistentVolume")],
});

export const persistentVolumeClaims: Kind = define({
  group: "",
  kind: "PersistentVolumeClaim",
  plural: "persistentvolumeclaims",
  shortNames: ["pvc"],
  hasStatus: true,
  returnsDeleted: true,
  subresources: [status("PersistentVolumeClaim")],
});

const limitRanges = define({ group: "", kind: "LimitRange", plural: "limitranges", shortNames: ["limits"] });
const resourceQuotas = define({
  group: "",
  kind: "ResourceQuota",
  plural: "resourcequotas",
  shortNames: ["quota"],
  hasStatus: true,
  returnsDeleted: true,
  subresources: [status("ResourceQuota")],
});

export const coreKinds: readonly Kind[] = [
  ...[configMaps, endpoints, events, limitRanges, namespaces, nodes, persistentVolumeClaims, persistentVolumes, pods],
  ...[resourceQuotas, secrets, serviceAccounts, services],
];
