import { stringAt } from "../json.ts";
import { events } from "./core.ts";
import { namedEventForm } from "./event-form.ts";
import { define, type Kind, type Subresource } from "./kind.ts";

const status = (kind: string): Subresource => ({ name: "status", kind, verbs: ["get", "patch", "update"] });

/** A kind of workload: a spec whose changes are counted, and a status. */
function workload(group: string, kind: string, plural: string, shortNames: readonly string[]): Kind {
  return define({
    group,
    kind,
    plural,
    shortNames,
    categories: ["all"],
    hasStatus: true,
    countsGenerations: true,
    subresources: [status(kind)],
  });
}

const scale: Subresource = {
  name: "scale",
  kind: "Scale",
  group: "autoscaling",
  version: "v1",
  verbs: ["get", "patch", "update"],
};

/** A workload whose number of replicas can be changed by itself. */
function scalable(kind: string, plural: string, shortNames: readonly string[]): Kind {
  return { ...workload("apps", kind, plural, shortNames), subresources: [scale, status(kind)] };
}

export const scalableKinds: readonly Kind[] = [
  scalable("Deployment", "deployments", ["deploy"]),
  scalable("ReplicaSet", "replicasets", ["rs"]),
  scalable("StatefulSet", "statefulsets", ["sts"]),
];

/** A kind that belongs to the cluster and has no status. */
function clusterWide(group: string, kind: string, plural: string, shortNames: readonly string[] = []): Kind {
  return define({ group, kind, plural, shortNames, namespaced: false });
}

export const leases: Kind = define({
  group: "coordination.k8s.io",
  kind: "Lease",
  plural: "leases",
  createsOnUpdate: true,
  updatesUnconditionally: false,
});

export const csiNodes: Kind = {
  ...clusterWide("storage.k8s.io", "CSINode", "csinodes"),
  updatesUnconditionally: false,
  returnsDeleted: true,
};

export const priorityClasses: Kind = clusterWide("scheduling.k8s.io", "PriorityClass", "priorityclasses", ["pc"]);
export const runtimeClasses: Kind = clusterWide("node.k8s.io", "RuntimeClass", "runtimeclasses");

export const certificateSigningRequests: Kind = define({
  group: "certificates.k8s.io",
  kind: "CertificateSigningRequest",
  plural: "certificatesigningrequests",
  shortNames: ["csr"],
  namespaced: false,
  names: "path",
  hasStatus: true,
  selectable: { "spec.signerName": (csr) => stringAt(csr, "spec", "signerName") },
  subresources: [
    { name: "approval", kind: "CertificateSigningRequest", verbs: ["get", "patch", "update"] },
    status("CertificateSigningRequest"),
  ],
});

/** The same events as those of the core group, with other names for their fields. */
const namedEvents: Kind = { ...events, group: "events.k8s.io", schema: "events.v1.Event", form: namedEventForm };

export const volumeAttachments: Kind = {
  ...clusterWide("storage.k8s.io", "VolumeAttachment", "volumeattachments"),
  hasStatus: true,
  returnsDeleted: true,
  subresources: [status("VolumeAttachment")],
};

export const resourceSlices: Kind = {
  ...clusterWide("resource.k8s.io", "ResourceSlice", "resourceslices"),
  selectable: {
    "spec.nodeName": (slice) => stringAt(slice, "spec", "nodeName"),
    "spec.driver": (slice) => stringAt(slice, "spec", "driver"),
  },
};

export const groupKinds: readonly Kind[] = [
  workload("apps", "DaemonSet", "daemonsets", ["ds"]),
  ...scalableKinds,
  workload("batch", "CronJob", "cronjobs", ["cj"]),
  workload("batch", "Job", "jobs", []),
  certificateSigningRequests,
  leases,
  define({ group: "discovery.k8s.io", kind: "EndpointSlice", plural: "endpointslices", countsGenerations: true }),
  namedEvents,
  runtimeClasses,
  {
    ...workload("policy", "PodDisruptionBudget", "poddisruptionbudgets", ["pdb"]),
    categories: [],
  },
  clusterWide("resource.k8s.io", "DeviceClass", "deviceclasses"),
  define({
    group: "resource.k8s.io",
    kind: "ResourceClaim",
    plural: "resourceclaims",
    hasStatus: true,
    subresources: [status("ResourceClaim")],
  }),
  define({ group: "resource.k8s.io", kind: "ResourceClaimTemplate", plural: "resourceclaimtemplates" }),
  resourceSlices,
  priorityClasses,
  { ...clusterWide("storage.k8s.io", "CSIDriver", "csidrivers"), returnsDeleted: true },
  csiNodes,
  { ...clusterWide("storage.k8s.io", "StorageClass", "storageclasses", ["sc"]), returnsDeleted: true },
  volumeAttachments,
];
