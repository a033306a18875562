// The simulated runtime: a CRI with behaviour, for tests and for hollow nodes.
export { type ServedRuntime, type ServedServices, serveRuntime } from "./serve.ts";
