import { isTrue } from "../rest/watch.ts";

/** What a request is about, read from its method and address; the authorizer and the router both go by it. */
export type RequestInfo = ResourceRequest | PathRequest;

export interface PathRequest {
  readonly type: "path";
  readonly verb: string;
  readonly path: string;
}

export interface ResourceRequest {
  readonly type: "resource";
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly namespace: string;
  readonly resource: string;
  readonly name: string;
  readonly subresource: string;
  /** What follows the subresource, for proxies. */
  readonly rest: string;
}

export function requestInfo(method: string, url: URL): RequestInfo {
  const path = url.pathname;
  const [root, ...segments] = path.split("/").slice(1).map(decoded);
  const isCore = root === "api" && segments.length >= 2;
  const isGroup = root === "apis" && segments.length >= 3;
  if (!isCore && !isGroup) return { type: "path", path, verb: method.toLowerCase() };
  const [group = "", version = "", ...parts] = isCore ? ["", ...segments] : segments;
  const place = partsOf(parts);
  if (place.resource === "") return { type: "path", path, verb: method.toLowerCase() };
  return { type: "resource", verb: verbOf(method, place.name, url.searchParams), group, version, ...place };
}

function partsOf(parts: readonly string[]): Omit<ResourceRequest, "type" | "verb" | "group" | "version"> {
  const [first = "", second = "", third = ""] = parts;
  const isInNamespace = first === "namespaces" && third !== "" && !(parts.length === 3 && isNamespacePart(third));
  const [resource = "", name = "", subresource = "", ...rest] = isInNamespace ? parts.slice(2) : parts;
  const namespace = isInNamespace ? second : "";
  return { namespace, resource, name, subresource, rest: rest.join("/") };
}

/** Subresources of a namespace itself, as opposed to resources in it. */
const isNamespacePart = (text: string): boolean => text === "status" || text === "finalize";

function verbOf(method: string, name: string, query: URLSearchParams): string {
  switch (method) {
    case "GET":
    case "HEAD":
      if (query.has("watch") && isTrue(query.get("watch"))) return "watch";
      return name === "" ? "list" : "get";
    case "POST":
      return "create";
    case "PUT":
      return "update";
    case "PATCH":
      return "patch";
    case "DELETE":
      return name === "" ? "deletecollection" : "delete";
    default:
      return "";
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
