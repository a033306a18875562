// A local copy of the API server's objects that cannot go deaf: list, watch, and everything that may go wrong with them.
export { Informer, type InformerSettings, withoutManagedFields } from "./informer.ts";
export type { ListWatchPorts, ListWatchScope, WatchClient } from "./list-watch.ts";
export type { Change } from "./store.ts";
