import { objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import { age } from "./age.ts";
import { type Column, column, numberAt, textOf, wide } from "./column.ts";

/** Of events in their stored form. */
export const eventColumns: readonly Column[] = [
  column("Last Seen", (object, nowMs) => sinceText(object, lastSeen(object), nowMs)),
  column("Type", textOf("type")),
  column("Reason", textOf("reason")),
  column("Object", (object) => {
    const kind = stringAt(object, "involvedObject", "kind").toLowerCase();
    const name = stringAt(object, "involvedObject", "name");
    return name === "" ? kind : `${kind}/${name}`;
  }),
  wide("Subobject", textOf("involvedObject", "fieldPath")),
  wide("Source", sourceText),
  column("Message", (object) => stringAt(object, "message").trim()),
  wide("First Seen", (object, nowMs) => sinceText(object, stringAt(object, "firstTimestamp"), nowMs)),
  wide("Count", (object) => numberAt(object, "series", "count") || numberAt(object, "count") || 1),
  wide("Name", ({ metadata }) => metadata.name ?? ""),
];

function lastSeen(object: ApiObject): string {
  return stringAt(object, "series", "lastObservedTime") || stringAt(object, "lastTimestamp");
}

function sinceText(object: ApiObject, time: string, nowMs: number): string {
  return age(time || stringAt(object, "eventTime") || object.metadata.creationTimestamp, nowMs);
}

function sourceText(object: ApiObject): string {
  const { component, host } = objectAt(object, "source");
  const from = String(component ?? "") || stringAt(object, "reportingComponent");
  const where = String(host ?? "") || stringAt(object, "reportingInstance");
  return where === "" ? from : `${from}, ${where}`;
}
