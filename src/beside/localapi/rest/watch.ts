import type { Timer } from "../../../ground/base/index.ts";
import type { JsonObject } from "../json.ts";
import { apiVersionOf, type Kind } from "../kinds/index.ts";
import type { ApiObject } from "../object.ts";
import type { Match } from "../selectors/label-selector.ts";
import { expired } from "../status-error.ts";
import type { Change } from "../store/store.ts";
import { forbiddenOption, matcherOf, parseVersion } from "./list.ts";
import type { World } from "./world.ts";

export type WatchEvent =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK"; readonly object: ApiObject }
  | { readonly type: "ERROR"; readonly object: JsonObject };

/** Where the events of a watch go. */
export interface WatchSink {
  send(event: WatchEvent): void;
  end(): void;
}

const bookmarkEveryMs = 60_000;
const shortestTimeoutSeconds = 1800;
const initialEventsEnd = "k8s.io/initial-events-end";

/** What a client may ask of a watch, checked before the answer begins. */
export interface WatchRequest {
  readonly kind: Kind;
  readonly matches: Match;
  readonly version: number;
  readonly bookmarks: boolean;
  readonly initialEvents: "implied" | "asked" | "unwanted";
  readonly timeoutMs: number;
}

export function readWatchRequest(kind: Kind, namespace: string, query: URLSearchParams): WatchRequest {
  const sendInitialEvents = query.get("sendInitialEvents");
  if (sendInitialEvents !== null && query.get("resourceVersionMatch") !== "NotOlderThan") {
    const why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
    throw forbiddenOption("resourceVersionMatch", why);
  }
  const seconds = Number(query.get("timeoutSeconds") ?? "0");
  // Clients that all started together would otherwise all come back together.
  const timeoutSeconds = seconds > 0 ? seconds : shortestTimeoutSeconds * (1 + Math.random());
  return {
    kind,
    matches: matcherOf(kind, namespace, query),
    version: parseVersion(query.get("resourceVersion")),
    bookmarks: isTrue(query.get("allowWatchBookmarks")),
    initialEvents: sendInitialEvents === null ? "implied" : isTrue(sendInitialEvents) ? "asked" : "unwanted",
    timeoutMs: timeoutSeconds * 1000,
  };
}

export function isTrue(text: string | null): boolean {
  return text === "" || text === "true" || text === "1";
}

/** Sends what happened since the version, then each change as it happens, until stopped or timed out. */
export function startWatch(world: World, request: WatchRequest, sink: WatchSink): () => void {
  const { clock } = world;
  const { published } = world.store;
  const { kind, matches, version, initialEvents } = request;
  const startsWithState = initialEvents === "asked" || (initialEvents === "implied" && version === 0);
  const from = startsWithState || version === 0 ? published.revision : version;
  // A version that is yet to come is of a life of the server that a backup or a broken disk took back: changes that are
  // numbered anew below it would never be seen.
  const missed = published.changesAfter(version > published.revision ? -1 : from, kind.storage);
  if (missed === undefined) {
    const which = version > published.revision ? "unknown" : "too old";
    const known = `${published.compactedRevision}..${published.revision}`;
    const error = expired(`${which} resource version: ${version} (${known})`);
    sink.send({ type: "ERROR", object: error.status() });
    sink.end();
    return () => {};
  }
  if (startsWithState) {
    for (const object of published.list(kind.storage)) if (matches(object)) sink.send({ type: "ADDED", object });
  }
  if (initialEvents === "asked") sink.send(bookmark(kind, published.revision, { [initialEventsEnd]: "true" }));
  const deliver = (change: Change): void => {
    const event = change.revision > from ? seenThrough(matches, change) : undefined;
    if (event !== undefined) sink.send(event);
  };
  for (const change of missed) deliver(change);
  const unsubscribe = published.watch(kind.storage, deliver);
  const timers = new Set<Timer>();
  const stop = (): void => {
    unsubscribe();
    for (const timer of timers) timer.cancel();
  };
  timers.add(
    clock.after(request.timeoutMs, () => {
      stop();
      sink.end();
    }),
  );
  if (request.bookmarks) remind();
  return stop;

  function remind(): void {
    const timer = clock.after(bookmarkEveryMs, () => {
      timers.delete(timer);
      sink.send(bookmark(kind, published.revision));
      remind();
    });
    timers.add(timer);
  }
}

function bookmark(kind: Kind, revision: number, annotations?: Readonly<Record<string, string>>): WatchEvent {
  const metadata = { resourceVersion: String(revision), ...(annotations !== undefined && { annotations }) };
  return { type: "BOOKMARK", object: { kind: kind.kind, apiVersion: apiVersionOf(kind), metadata } };
}

/** A change as one sees it who sees only what matches: what begins to match appears, what ceases to disappears. */
function seenThrough(matches: Match, { type, object, previous }: Change): WatchEvent | undefined {
  const didMatch = previous !== undefined && matches(previous);
  const doesMatch = type !== "DELETED" && matches(object);
  if (didMatch && doesMatch) return { type: "MODIFIED", object };
  if (doesMatch) return { type: "ADDED", object };
  if (!didMatch || previous === undefined) return undefined;
  // What left is shown as it last matched, with the version at which it left.
  const { resourceVersion } = object.metadata;
  return { type: "DELETED", object: { ...previous, metadata: { ...previous.metadata, resourceVersion } } };
}
