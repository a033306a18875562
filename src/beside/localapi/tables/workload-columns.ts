import { isObject, listAt, objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import { age, humanDuration } from "./age.ts";
import { ageColumn, type Column, column, integer, labelsText, nameColumn, numberAt, numberOf, wide } from "./column.ts";

const containerFields =
  (field: string, template: readonly string[] = ["spec", "template"]) =>
  (object: ApiObject): string =>
    listAt(object, ...template, "spec", "containers")
      .map((container) => (isObject(container) ? String(container[field] ?? "") : ""))
      .join(",");

const templateColumns: readonly Column[] = [
  wide("Containers", containerFields("name")),
  wide("Images", containerFields("image")),
  wide("Selector", (object) => labelsText(objectAt(object, "spec", "selector")["matchLabels"])),
];

const wanted = (object: ApiObject): number => {
  const { replicas } = objectAt(object, "spec");
  return typeof replicas === "number" ? replicas : 1;
};

export const deploymentColumns: readonly Column[] = [
  nameColumn,
  column("Ready", (object) => `${numberAt(object, "status", "readyReplicas")}/${wanted(object)}`),
  column("Up-to-date", numberOf("status", "updatedReplicas")),
  column("Available", numberOf("status", "availableReplicas")),
  ageColumn,
  ...templateColumns,
];

export const replicaSetColumns: readonly Column[] = [
  nameColumn,
  integer("Desired", wanted),
  integer("Current", numberOf("status", "replicas")),
  integer("Ready", numberOf("status", "readyReplicas")),
  ageColumn,
  ...templateColumns,
];

export const statefulSetColumns: readonly Column[] = [
  nameColumn,
  column("Ready", (object) => `${numberAt(object, "status", "readyReplicas")}/${wanted(object)}`),
  ageColumn,
  ...templateColumns.slice(0, 2),
];

export const daemonSetColumns: readonly Column[] = [
  nameColumn,
  integer("Desired", numberOf("status", "desiredNumberScheduled")),
  integer("Current", numberOf("status", "currentNumberScheduled")),
  integer("Ready", numberOf("status", "numberReady")),
  integer("Up-to-date", numberOf("status", "updatedNumberScheduled")),
  integer("Available", numberOf("status", "numberAvailable")),
  column("Node Selector", (object) => labelsText(objectAt(object, "spec", "template", "spec")["nodeSelector"])),
  ageColumn,
  ...templateColumns,
];

export const jobColumns: readonly Column[] = [
  nameColumn,
  column("Status", jobStatus),
  column("Completions", (object) => {
    const { completions } = objectAt(object, "spec");
    return `${numberAt(object, "status", "succeeded")}/${typeof completions === "number" ? completions : 1}`;
  }),
  column("Duration", (object, nowMs) => {
    const start = Date.parse(stringAt(object, "status", "startTime"));
    if (Number.isNaN(start)) return "";
    const end = Date.parse(stringAt(object, "status", "completionTime"));
    return humanDuration((Number.isNaN(end) ? nowMs : end) - start);
  }),
  ageColumn,
  ...templateColumns,
];

function jobStatus(object: ApiObject): string {
  const conditions = listAt(object, "status", "conditions").filter(
    (condition) => isObject(condition) && condition["status"] === "True",
  );
  const has = (type: string): boolean =>
    conditions.some((condition) => isObject(condition) && condition["type"] === type);
  if (has("Complete")) return "Complete";
  if (has("Failed")) return "Failed";
  if (object.metadata.deletionTimestamp !== undefined) return "Terminating";
  return has("Suspended") ? "Suspended" : "Running";
}

const cronTemplate = ["spec", "jobTemplate", "spec", "template"];

export const cronJobColumns: readonly Column[] = [
  nameColumn,
  column("Schedule", (object) => stringAt(object, "spec", "schedule")),
  column("Timezone", (object) => stringAt(object, "spec", "timeZone") || "<none>"),
  column("Suspend", (object) => (objectAt(object, "spec")["suspend"] === true ? "True" : "False")),
  integer("Active", (object) => listAt(object, "status", "active").length),
  column("Last Schedule", (object, nowMs) => {
    const last = stringAt(object, "status", "lastScheduleTime");
    return last === "" ? "<none>" : age(last, nowMs);
  }),
  ageColumn,
  wide("Containers", containerFields("name", cronTemplate)),
  wide("Images", containerFields("image", cronTemplate)),
  wide("Selector", (object) => labelsText(objectAt(object, "spec", "jobTemplate", "spec", "selector")["matchLabels"])),
];
