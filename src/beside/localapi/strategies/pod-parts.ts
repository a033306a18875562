import { listAt, objectAt } from "../json.ts";
import type { ApiObject } from "../object.ts";

/** The old pod with the ephemeral containers of the new; those that are there stay. */
export function onlyEphemeralContainers(object: ApiObject, old: ApiObject): ApiObject {
  const containers = listAt(object, "spec", "ephemeralContainers");
  return { ...old, metadata: old.metadata, spec: { ...objectAt(old, "spec"), ephemeralContainers: containers } };
}
