import type { ApiObject } from "../object.ts";

/** Names of the fields of an event: in the events.k8s.io group, and in the core group, which is what is stored. */
const names: readonly (readonly [string, string])[] = [
  ["note", "message"],
  ["regarding", "involvedObject"],
  ["reportingController", "reportingComponent"],
  ["deprecatedSource", "source"],
  ["deprecatedCount", "count"],
  ["deprecatedFirstTimestamp", "firstTimestamp"],
  ["deprecatedLastTimestamp", "lastTimestamp"],
];
const toCore = new Map(names);
const fromCore = new Map(names.map(([named, core]) => [core, named]));

function renamed(object: ApiObject, map: ReadonlyMap<string, string>, apiVersion: string): ApiObject {
  const fields = Object.entries(object).map(([key, value]) => [map.get(key) ?? key, value]);
  return { ...Object.fromEntries(fields), apiVersion, kind: "Event", metadata: object.metadata };
}

export const namedEventForm = {
  toStored: (object: ApiObject): ApiObject => renamed(object, toCore, "v1"),
  fromStored: (object: ApiObject): ApiObject => renamed(object, fromCore, "events.k8s.io/v1"),
};
