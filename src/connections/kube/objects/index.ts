// Single objects that pods refer to: read once, or watched while somebody uses them.
export { ObjectWatches } from "./object-watches.ts";
export { getObject, requestToken } from "./single-objects.ts";
