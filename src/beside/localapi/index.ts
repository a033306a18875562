// A small faithful Kubernetes API server for one machine, tests and simulations.
export type { Grant } from "./auth/authorize.ts";
export { runApiServer } from "./serve.ts";
export { type LocalApi, type LocalApiOptions, startLocalApi } from "./start.ts";
