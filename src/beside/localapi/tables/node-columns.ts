import type { Node } from "../../../ground/model/index.ts";
import type { ApiObject } from "../object.ts";
import { ageColumn, type Column, column, nameColumn, textOf, textOr, wide } from "./column.ts";

const asNode = (object: ApiObject): Node => object as unknown as Node;

export const nodeColumns: readonly Column[] = [
  nameColumn,
  column("Status", (object) => statusText(asNode(object))),
  column("Roles", (object) => rolesText(asNode(object))),
  ageColumn,
  column("Version", textOf("status", "nodeInfo", "kubeletVersion")),
  wide("Internal-IP", (object) => addressOf(asNode(object), "InternalIP")),
  wide("External-IP", (object) => addressOf(asNode(object), "ExternalIP")),
  wide("OS-Image", textOr("<unknown>", "status", "nodeInfo", "osImage")),
  wide("Kernel-Version", textOr("<unknown>", "status", "nodeInfo", "kernelVersion")),
  wide("Container-Runtime", textOr("<unknown>", "status", "nodeInfo", "containerRuntimeVersion")),
];

function statusText({ spec, status }: Node): string {
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  const text = ready === undefined ? "Unknown" : ready.status === "True" ? "Ready" : "NotReady";
  return spec?.unschedulable === true ? `${text},SchedulingDisabled` : text;
}

const rolePrefix = "node-role.kubernetes.io/";

function rolesText({ metadata }: Node): string {
  const labels = metadata?.labels ?? {};
  const roles = Object.keys(labels)
    .filter((key) => key.startsWith(rolePrefix) && key.length > rolePrefix.length)
    .map((key) => key.slice(rolePrefix.length));
  if (labels["kubernetes.io/role"]) roles.push(labels["kubernetes.io/role"]);
  return roles.length === 0 ? "<none>" : roles.sort().join(",");
}

function addressOf({ status }: Node, type: string): string {
  return status?.addresses?.find((address) => address.type === type)?.address ?? "<none>";
}
