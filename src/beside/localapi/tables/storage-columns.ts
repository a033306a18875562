import { listAt, objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import {
  accessModes,
  ageColumn,
  type Column,
  column,
  integer,
  nameColumn,
  quantityOf,
  textOf,
  textOr,
  wide,
} from "./column.ts";

const flag =
  (...path: readonly string[]) =>
  (object: ApiObject): boolean =>
    objectAt(object, ...path.slice(0, -1))[path.at(-1) ?? ""] === true;

const bool = (name: string, read: (object: ApiObject) => boolean): Column => column(name, read, { type: "boolean" });

/** What is on its way out says so. */
const phase = (object: ApiObject): string =>
  object.metadata.deletionTimestamp === undefined ? stringAt(object, "status", "phase") : "Terminating";

export const volumeColumns: readonly Column[] = [
  nameColumn,
  column("Capacity", quantityOf("spec", "capacity", "storage")),
  column("Access Modes", accessModes("spec", "accessModes")),
  column("Reclaim Policy", textOf("spec", "persistentVolumeReclaimPolicy")),
  column("Status", phase),
  column("Claim", (object) => {
    const { namespace, name } = objectAt(object, "spec", "claimRef");
    return name === undefined ? "" : `${String(namespace)}/${String(name)}`;
  }),
  column("StorageClass", textOf("spec", "storageClassName")),
  column("VolumeAttributesClass", textOr("<unset>", "spec", "volumeAttributesClassName")),
  column("Reason", textOf("status", "reason")),
  ageColumn,
  wide("VolumeMode", textOr("<unset>", "spec", "volumeMode")),
];

export const claimColumns: readonly Column[] = [
  nameColumn,
  column("Status", phase),
  column("Volume", textOf("spec", "volumeName")),
  column("Capacity", (object) =>
    stringAt(object, "spec", "volumeName") === "" ? "" : quantityOf("status", "capacity", "storage")(object),
  ),
  column("Access Modes", accessModes("status", "accessModes")),
  column("StorageClass", textOf("spec", "storageClassName")),
  column("VolumeAttributesClass", textOr("<unset>", "spec", "volumeAttributesClassName")),
  ageColumn,
  wide("VolumeMode", textOr("<unset>", "spec", "volumeMode")),
];

export const storageClassColumns: readonly Column[] = [
  column("Name", (object) => {
    const isDefault = object.metadata.annotations?.["storageclass.kubernetes.io/is-default-class"] === "true";
    return `${object.metadata.name}${isDefault ? " (default)" : ""}`;
  }),
  column("Provisioner", textOf("provisioner")),
  column("ReclaimPolicy", textOr("Delete", "reclaimPolicy")),
  column("VolumeBindingMode", textOr("Immediate", "volumeBindingMode")),
  bool("AllowVolumeExpansion", flag("allowVolumeExpansion")),
  ageColumn,
];

export const csiNodeColumns: readonly Column[] = [
  nameColumn,
  integer("Drivers", (object) => listAt(object, "spec", "drivers").length),
  ageColumn,
];

export const csiDriverColumns: readonly Column[] = [
  nameColumn,
  bool("AttachRequired", (object) => objectAt(object, "spec")["attachRequired"] !== false),
  bool("PodInfoOnMount", flag("spec", "podInfoOnMount")),
  bool("StorageCapacity", flag("spec", "storageCapacity")),
  column("TokenRequests", (object) => {
    const audiences = listAt(object, "spec", "tokenRequests").map((request) => stringAt(request, "audience"));
    return audiences.length === 0 ? "<unset>" : audiences.join(",");
  }),
  bool("RequiresRepublish", flag("spec", "requiresRepublish")),
  column("Modes", (object) => {
    const modes = listAt(object, "spec", "volumeLifecycleModes").map(String);
    return modes.length === 0 ? "Persistent" : modes.join(",");
  }),
  ageColumn,
];

export const attachmentColumns: readonly Column[] = [
  nameColumn,
  column("Attacher", textOf("spec", "attacher")),
  column("PV", textOf("spec", "source", "persistentVolumeName")),
  column("Node", textOf("spec", "nodeName")),
  bool("Attached", flag("status", "attached")),
  ageColumn,
];
