import { table } from "../../../ground/base/index.ts";
import type { JsonObject } from "../json.ts";
import type { Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { Column } from "./column.ts";
import { eventColumns } from "./event-columns.ts";
import { nodeColumns } from "./node-columns.ts";
import * as other from "./other-columns.ts";
import { podColumns } from "./pod-columns.ts";
import * as storage from "./storage-columns.ts";
import * as workload from "./workload-columns.ts";

const columnsByStorage: Readonly<Record<string, readonly Column[]>> = table({
  pods: podColumns,
  nodes: nodeColumns,
  events: eventColumns,
  namespaces: other.namespaceColumns,
  configmaps: other.configMapColumns,
  secrets: other.secretColumns,
  serviceaccounts: other.serviceAccountColumns,
  services: other.serviceColumns,
  endpoints: other.endpointsColumns,
  endpointslices: other.endpointSliceColumns,
  leases: other.leaseColumns,
  poddisruptionbudgets: other.budgetColumns,
  resourcequotas: other.quotaColumns,
  runtimeclasses: other.runtimeClassColumns,
  priorityclasses: other.priorityClassColumns,
  certificatesigningrequests: other.signingRequestColumns,
  deployments: workload.deploymentColumns,
  replicasets: workload.replicaSetColumns,
  statefulsets: workload.statefulSetColumns,
  daemonsets: workload.daemonSetColumns,
  jobs: workload.jobColumns,
  cronjobs: workload.cronJobColumns,
  persistentvolumes: storage.volumeColumns,
  persistentvolumeclaims: storage.claimColumns,
  storageclasses: storage.storageClassColumns,
  csinodes: storage.csiNodeColumns,
  csidrivers: storage.csiDriverColumns,
  volumeattachments: storage.attachmentColumns,
});

/** What the rows of a table carry beside their cells. */
export type IncludedObject = "None" | "Metadata" | "Object";

/** Whether the client would rather have a table than objects. */
export function wantsTable(accept: string): boolean {
  return wantsAs(accept, "Table");
}

/** Whether the client would rather have the metadata alone. */
export function wantsMetadata(accept: string): boolean {
  return wantsAs(accept, "PartialObjectMetadata") || wantsAs(accept, "PartialObjectMetadataList");
}

function wantsAs(accept: string, form: string): boolean {
  // Of the forms that a client takes, the first that we have; protobuf we do not write.
  const [first = ""] = accept.split(",").filter((type) => !type.includes("protobuf"));
  const words = first.split(";").map((word) => word.trim());
  return words.includes(`as=${form}`) && words.includes("g=meta.k8s.io") && words.includes("v=v1");
}

/** Objects in their stored form as a table. */
export function tableOf(
  kind: Kind,
  objects: readonly ApiObject[],
  metadata: JsonObject,
  options: { readonly include: IncludedObject; readonly withColumns: boolean; readonly nowMs: number },
): JsonObject {
  const columns = columnsByStorage[kind.storage] ?? other.plainColumns;
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata,
    columnDefinitions: options.withColumns ? columns.map(describeColumn) : null,
    rows: objects.map((object) => ({
      cells: columns.map((column) => column.read(object, options.nowMs)),
      ...rowObject(kind, object, options.include),
    })),
  };
}

function describeColumn({ name, type, wide }: Column): JsonObject {
  return { name, type, format: name === "Name" ? "name" : "", description: "", priority: wide ? 1 : 0 };
}

function rowObject(kind: Kind, object: ApiObject, include: IncludedObject): JsonObject {
  switch (include) {
    case "None":
      return {};
    case "Object":
      return { object: kind.form === undefined ? object : kind.form.fromStored(object) };
    case "Metadata":
      return { object: { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object.metadata } };
  }
}
