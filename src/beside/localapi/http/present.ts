import type { JsonObject } from "../json.ts";
import { apiVersionOf, type Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { Page } from "../rest/list.ts";
import type { WatchEvent } from "../rest/watch.ts";
import { type IncludedObject, tableOf, wantsMetadata, wantsTable } from "../tables/table.ts";

/** Turns objects as they are stored into what a client asked to see of them. */
export class Presenter {
  readonly #kind: Kind;
  readonly #asTable: boolean;
  readonly #onlyMetadata: boolean;
  readonly #include: IncludedObject;
  readonly #nowMs: () => number;
  #hasSentColumns = false;

  constructor(kind: Kind, accept: string, query: URLSearchParams, nowMs: () => number) {
    this.#kind = kind;
    this.#asTable = wantsTable(accept);
    this.#onlyMetadata = wantsMetadata(accept);
    const include = query.get("includeObject");
    this.#include = include === "None" || include === "Object" ? include : "Metadata";
    this.#nowMs = nowMs;
  }

  object(object: ApiObject): JsonObject {
    if (!this.#asTable) return this.#shown(object);
    return this.#tableOf([object], { resourceVersion: object.metadata.resourceVersion });
  }

  list(page: Page): JsonObject {
    const metadata = listMetadata(page);
    if (this.#asTable) return this.#tableOf(page.items, metadata);
    const items = page.items.map((object) => {
      // The list says of what kind its items are.
      const { apiVersion, kind, ...rest } = this.#shown(object);
      return rest;
    });
    if (this.#onlyMetadata)
      return { ...partial("PartialObjectMetadataList"), metadata, items: page.items.map(partialOf) };
    return { kind: `${this.#kind.kind}List`, apiVersion: apiVersionOf(this.#kind), metadata, items };
  }

  event(event: WatchEvent): { readonly type: string; readonly object: JsonObject } {
    if (event.type === "ERROR") return event;
    if (!this.#asTable) return { type: event.type, object: this.#shown(event.object) };
    const { metadata } = event.object;
    const objects = event.type === "BOOKMARK" ? [] : [event.object];
    const { annotations } = metadata;
    const tableMetadata = {
      resourceVersion: metadata.resourceVersion,
      ...(event.type === "BOOKMARK" && { annotations }),
    };
    return { type: event.type, object: this.#tableOf(objects, tableMetadata) };
  }

  #shown(object: ApiObject): ApiObject {
    if (this.#onlyMetadata) return partialOf(object);
    return this.#kind.form === undefined ? object : this.#kind.form.fromStored(object);
  }

  /** The columns are told once; the tables of later events do without. */
  #tableOf(objects: readonly ApiObject[], metadata: JsonObject): JsonObject {
    const withColumns = !this.#hasSentColumns;
    this.#hasSentColumns = true;
    return tableOf(this.#kind, objects, metadata, { include: this.#include, withColumns, nowMs: this.#nowMs() });
  }
}

const partial = (kind: string) => ({ kind, apiVersion: "meta.k8s.io/v1" });

function partialOf({ metadata }: ApiObject): ApiObject {
  return { ...partial("PartialObjectMetadata"), metadata };
}

function listMetadata({ resourceVersion, continue: token, remainingItemCount }: Page): JsonObject {
  return {
    resourceVersion,
    ...(token !== undefined && { continue: token }),
    ...(remainingItemCount !== undefined && { remainingItemCount }),
  };
}
