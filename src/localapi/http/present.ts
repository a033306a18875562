import type { JsonObject } from "../json.ts";
import { apiVersionOf, type Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { Page } from "../rest/list.ts";

/** An object in the form its kind shows. */
export function presentObject(kind: Kind, object: ApiObject): ApiObject {
  return kind.form === undefined ? object : kind.form.fromStored(object);
}

export function presentList(kind: Kind, page: Page): JsonObject {
  return {
    kind: `${kind.kind}List`,
    apiVersion: apiVersionOf(kind),
    metadata: listMetadata(page),
    items: page.items.map((object) => {
      // The list says of what kind its items are.
      const { apiVersion, kind: name, ...rest } = presentObject(kind, object);
      return rest;
    }),
  };
}

export function listMetadata({ resourceVersion, continue: token, remainingItemCount }: Page): JsonObject {
  return {
    resourceVersion,
    ...(token !== undefined && { continue: token }),
    ...(remainingItemCount !== undefined && { remainingItemCount }),
  };
}
