import type { SpecialHandler } from "../http/api.ts";
import { writeOptions } from "../http/options.ts";
import { json, type Reply } from "../http/reply.ts";
import { isObject, type JsonObject, objectAt } from "../json.ts";
import type { Kind } from "../kinds/index.ts";
import { type ApiObject, keyOf } from "../object.ts";
import { unmetExpectations } from "../rest/kind-fates.ts";
import { patchObject, patchTypeOf } from "../rest/patch.ts";
import { writeUpdate } from "../rest/update.ts";
import { methodNotAllowed, notFound } from "../status-error.ts";

/** GET, PUT and PATCH of KIND/NAME/scale: how many replicas are wanted, apart from all else. */
export function scaleOf(kind: Kind): SpecialHandler {
  return async (call, world): Promise<Reply> => {
    const { namespace, name, method } = call;
    const tables = method === "GET" ? world.store.published : world.store;
    const found = tables.get(kind.storage, keyOf(namespace, name));
    if (found === undefined) throw notFound(kind, name);
    if (method === "GET") return json(shownScale(found));
    const options = writeOptions(call.user, call.query, call.warn);
    for (const text of unmetExpectations(kind, found)) call.warn(text);
    const target = { kind, namespace, name, subresource: "" };
    const body = await call.body();
    switch (method) {
      case "PUT": {
        const spec = { ...objectAt(found, "spec"), replicas: objectAt(body, "spec")["replicas"] ?? 0 };
        const { resourceVersion } = objectAt(body, "metadata");
        const metadata = {
          ...found.metadata,
          resourceVersion: typeof resourceVersion === "string" ? resourceVersion : "",
        };
        return json(shownScale(writeUpdate(world, target, found, { ...found, metadata, spec }, options)));
      }
      case "PATCH": {
        const type = patchTypeOf(call.contentType);
        const patch =
          type === "json" || !isObject(body) ? body : { spec: { replicas: objectAt(body, "spec")["replicas"] } };
        return json(shownScale(patchObject(world, target, type === "apply" ? "merge" : type, patch, options).object));
      }
      default:
        throw methodNotAllowed();
    }
  };
}

function shownScale(object: ApiObject): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const { replicas } = objectAt(object, "spec");
  const labels = Object.entries(objectAt(object, "spec", "selector", "matchLabels"));
  const selector = labels.map(([key, value]) => `${key}=${String(value)}`).join(",");
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: { ...(typeof replicas === "number" && replicas > 0 && { replicas }) },
    status: { replicas: objectAt(object, "status")["replicas"] ?? 0, ...(selector !== "" && { selector }) },
  };
}
