// Single objects that pods refer to: read once, or watched while somebody uses them.
export { type NamedObject, ObjectWatches } from "./object-watches.ts";
export { getObject, requestToken } from "./single-objects.ts";
