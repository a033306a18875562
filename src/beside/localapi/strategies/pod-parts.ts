import { isObject, listAt, objectAt } from "../json.ts";
import type { ApiObject } from "../object.ts";

/** The old pod with the ephemeral containers of the new; those that are there stay. */
export function onlyEphemeralContainers(object: ApiObject, old: ApiObject): ApiObject {
  const containers = listAt(object, "spec", "ephemeralContainers");
  return { ...old, metadata: old.metadata, spec: { ...objectAt(old, "spec"), ephemeralContainers: containers } };
}

/** The old pod with the resources and resize policies of the new one's containers. */
export function keepAllowedResize(object: ApiObject, old: ApiObject): ApiObject {
  const spec = objectAt(old, "spec");
  const resized = (field: string): readonly unknown[] =>
    listAt(old, "spec", field).map((container) => {
      const name = isObject(container) ? container["name"] : undefined;
      const wanted = listAt(object, "spec", field).find((other) => isObject(other) && other["name"] === name);
      if (!isObject(container) || !isObject(wanted)) return container;
      return { ...container, resources: wanted["resources"], resizePolicy: wanted["resizePolicy"] };
    });
  return {
    ...old,
    spec: {
      ...spec,
      containers: resized("containers"),
      ...(spec["initContainers"] !== undefined && { initContainers: resized("initContainers") }),
    },
  };
}
