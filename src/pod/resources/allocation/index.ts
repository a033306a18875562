// What pods were promised, and what their containers were given, in files that any kubelet can go on with.
export { Actuations } from "./actuations.ts";
export { Allocations } from "./allocations.ts";
