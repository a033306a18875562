import { isObject, listAt, objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import { humanDuration } from "./age.ts";
import {
  ageColumn,
  type Column,
  column,
  countOf,
  integer,
  labelsText,
  nameColumn,
  numberAt,
  numberOf,
  textOf,
  textOr,
  wide,
} from "./column.ts";

export const plainColumns: readonly Column[] = [
  nameColumn,
  column("Created At", ({ metadata }) => metadata.creationTimestamp ?? "", { type: "date" }),
];

export const namespaceColumns: readonly Column[] = [nameColumn, column("Status", textOf("status", "phase")), ageColumn];
export const configMapColumns: readonly Column[] = [
  nameColumn,
  column("Data", (object) => countOf("data")(object) + countOf("binaryData")(object)),
  ageColumn,
];
export const secretColumns: readonly Column[] = [
  nameColumn,
  column("Type", textOf("type")),
  column("Data", countOf("data")),
  ageColumn,
];
export const serviceAccountColumns: readonly Column[] = [
  nameColumn,
  column("Secrets", (object) => listAt(object, "secrets").length),
  ageColumn,
];
export const leaseColumns: readonly Column[] = [
  nameColumn,
  column("Holder", textOf("spec", "holderIdentity")),
  ageColumn,
];
export const runtimeClassColumns: readonly Column[] = [nameColumn, column("Handler", textOf("handler")), ageColumn];
export const priorityClassColumns: readonly Column[] = [
  nameColumn,
  integer("Value", numberOf("value")),
  column("Global-Default", (object) => object["globalDefault"] === true, { type: "boolean" }),
  ageColumn,
  column("PreemptionPolicy", textOr("PreemptLowerPriority", "preemptionPolicy")),
];

export const serviceColumns: readonly Column[] = [
  nameColumn,
  column("Type", textOf("spec", "type")),
  column("Cluster-IP", textOr("<none>", "spec", "clusterIP")),
  column("External-IP", externalText),
  column("Port(s)", (object) => {
    const ports = listAt(object, "spec", "ports").map(portText);
    return ports.length === 0 ? "<none>" : ports.join(",");
  }),
  ageColumn,
  wide("Selector", (object) => labelsText(objectAt(object, "spec")["selector"])),
];

function externalText(object: ApiObject): string {
  const addresses = listAt(object, "spec", "externalIPs").map(String);
  if (stringAt(object, "spec", "type") === "ExternalName") return stringAt(object, "spec", "externalName");
  if (addresses.length > 0) return addresses.join(",");
  return stringAt(object, "spec", "type") === "LoadBalancer" ? "<pending>" : "<none>";
}

function portText(port: unknown): string {
  const { port: number, nodePort, protocol = "TCP" } = objectAt({ port }, "port");
  return nodePort === undefined ? `${number}/${protocol}` : `${number}:${nodePort}/${protocol}`;
}

export const endpointsColumns: readonly Column[] = [
  nameColumn,
  column("Endpoints", (object) => {
    const all = listAt(object, "subsets").flatMap((subset) =>
      listAt(subset, "addresses").flatMap((address) =>
        listAt(subset, "ports").map((port) => `${stringAt(address, "ip")}:${numberAt(port, "port")}`),
      ),
    );
    return all.length === 0
      ? "<none>"
      : `${all.slice(0, 3).join(",")}${all.length > 3 ? ` + ${all.length - 3} more...` : ""}`;
  }),
  ageColumn,
];

export const endpointSliceColumns: readonly Column[] = [
  nameColumn,
  column("AddressType", textOf("addressType")),
  column("Ports", (object) =>
    listText(listAt(object, "ports").map((port) => String(objectAt({ port }, "port")["port"] ?? "*"))),
  ),
  column("Endpoints", (object) =>
    listText(listAt(object, "endpoints").flatMap((endpoint) => listAt(endpoint, "addresses").map(String))),
  ),
  ageColumn,
];

function listText(items: readonly string[]): string {
  if (items.length === 0) return "<unset>";
  return items.length <= 3 ? items.join(",") : `${items.slice(0, 3).join(",")} + ${items.length - 3} more...`;
}

export const signingRequestColumns: readonly Column[] = [
  nameColumn,
  ageColumn,
  column("SignerName", textOr("<none>", "spec", "signerName")),
  column("Requestor", textOf("spec", "username")),
  column("RequestedDuration", (object) => {
    const seconds = numberAt(object, "spec", "expirationSeconds");
    return seconds === 0 ? "<none>" : humanDuration(seconds * 1000);
  }),
  column("Condition", (object) => {
    const types = listAt(object, "status", "conditions").map((condition) => isObject(condition) && condition["type"]);
    const decision = types.includes("Denied") ? "Denied" : types.includes("Approved") ? "Approved" : "Pending";
    const failed = types.includes("Failed") ? ",Failed" : "";
    return `${decision}${failed}${stringAt(object, "status", "certificate") === "" ? "" : ",Issued"}`;
  }),
];

export const quotaColumns: readonly Column[] = [
  nameColumn,
  column("Request", (object) => quotaText(object, (name) => !name.startsWith("limits"))),
  column("Limit", (object) => quotaText(object, (name) => name.startsWith("limits"))),
  ageColumn,
];

function quotaText(object: ApiObject, isShown: (name: string) => boolean): string {
  const hard = objectAt(object, "status", "hard");
  const used = objectAt(object, "status", "used");
  const names = Object.keys(hard).filter(isShown).sort();
  return names.map((name) => `${name}: ${String(used[name] ?? 0)}/${String(hard[name])}`).join(", ");
}

const orNone =
  (field: string) =>
  (object: ApiObject): string =>
    String(objectAt(object, "spec")[field] ?? "N/A");

export const budgetColumns: readonly Column[] = [
  nameColumn,
  column("Min Available", orNone("minAvailable")),
  column("Max Unavailable", orNone("maxUnavailable")),
  integer("Allowed Disruptions", numberOf("status", "disruptionsAllowed")),
  ageColumn,
];
