// A local copy of the API server's objects that cannot go deaf: list, watch, and everything that may go wrong with them.
export { Informer, withoutManagedFields } from "./informer.ts";
export type { ListWatchPorts, WatchClient } from "./list-watch.ts";
