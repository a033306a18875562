import { ProblemList } from "../../../ground/model/index.ts";
import type { Kind } from "../kinds/index.ts";
import { type ApiObject, keyOf, keyOfObject } from "../object.ts";
import { matchFields } from "../selectors/field-selector.ts";
import { type Match, parseLabelSelector } from "../selectors/label-selector.ts";
import { badRequest, expired, invalid, notFound, StatusError } from "../status-error.ts";
import { continueToken, readContinueToken } from "./continue-token.ts";
import type { World } from "./world.ts";

export interface Page {
  readonly items: readonly ApiObject[];
  readonly resourceVersion: string;
  readonly continue?: string;
  readonly remainingItemCount?: number;
}

export function readObject(
  world: World,
  kind: Kind,
  namespace: string,
  name: string,
  version: string | null,
): ApiObject {
  requireKnownVersion(world, parseVersion(version));
  const found = world.store.published.get(kind.storage, keyOf(namespace, name));
  if (found === undefined) throw notFound(kind, name);
  return found;
}

/** What the selectors of a request choose; an empty namespace stands for all. */
export function matcherOf(kind: Kind, namespace: string, query: URLSearchParams): Match {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  const fields = matchFields(kind, query.get("fieldSelector") ?? "");
  return (object) => (namespace === "" || object.metadata.namespace === namespace) && labels(object) && fields(object);
}

export function listObjects(world: World, kind: Kind, namespace: string, query: URLSearchParams): Page {
  const matches = matcherOf(kind, namespace, query);
  const limit = parseLimit(query.get("limit"));
  const token = query.get("continue") ?? "";
  const version = parseVersion(query.get("resourceVersion"));
  if (token !== "") {
    if (version > 0) throw badRequest("specifying resource version is not allowed when using continue");
    return continueList(world, kind, matches, limit, token);
  }
  requireKnownVersion(world, version);
  const match = query.get("resourceVersionMatch");
  if (match !== null && !query.get("resourceVersion")) {
    throw forbiddenOption(
      "resourceVersionMatch",
      "resourceVersionMatch is forbidden unless resourceVersion is provided",
    );
  }
  const isExact = version > 0 && (match === "Exact" || (match === null && limit > 0));
  const revision = isExact ? version : world.store.published.revision;
  const objects = world.store.published.listAt(kind.storage, revision);
  if (objects === undefined) throw expired(`The provided resource version is too old: ${version}`);
  return cut(objects.filter(matches), limit, revision);
}

function continueList(world: World, kind: Kind, matches: Match, limit: number, text: string): Page {
  const token = readContinueToken(text);
  const revision = token.revision ?? world.store.published.revision;
  const objects = world.store.published.listAt(kind.storage, revision);
  if (objects === undefined) {
    throw new ContinueExpiredError(continueToken({ after: token.after }));
  }
  return cut(
    objects.filter((object) => keyOfObject(object) > token.after && matches(object)),
    limit,
    revision,
  );
}

/** The rest of a list can't be given as it was; the client may go on with what is there now. */
class ContinueExpiredError extends StatusError {
  readonly continue: string;

  constructor(token: string) {
    super(
      410,
      "Expired",
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results.",
    );
    this.continue = token;
  }

  override status(): ReturnType<StatusError["status"]> {
    return { ...super.status(), metadata: { continue: this.continue } };
  }
}

function cut(objects: readonly ApiObject[], limit: number, revision: number): Page {
  const resourceVersion = String(revision);
  const last = objects[limit - 1];
  if (limit === 0 || objects.length <= limit || last === undefined) return { items: objects, resourceVersion };
  return {
    items: objects.slice(0, limit),
    resourceVersion,
    continue: continueToken({ after: keyOfObject(last), revision }),
    remainingItemCount: objects.length - limit,
  };
}

/** Options of a list or a watch that contradict each other. */
export function forbiddenOption(field: string, why: string): StatusError {
  const problems = new ProblemList();
  problems.forbidden(field, why);
  return invalid({ group: "meta.k8s.io", kind: "ListOptions", plural: "" }, "", problems.problems);
}

function parseLimit(text: string | null): number {
  if (text === null || text === "") return 0;
  if (!/^\d+$/.test(text)) throw badRequest(`limit: found "${text}", wanted a number`);
  return Number(text);
}

/** 0 when any version will do. */
export function parseVersion(text: string | null): number {
  if (text === null || text === "") return 0;
  if (!/^\d+$/.test(text)) throw badRequest(`invalid resource version "${text}"`);
  return Number(text);
}

/** A version from the future can't be waited for: this server is the only one. */
function requireKnownVersion(world: World, version: number): void {
  if (version <= world.store.published.revision) return;
  const message = `Too large resource version: ${version}, current: ${world.store.published.revision}`;
  throw new StatusError(504, "Timeout", message, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });
}
