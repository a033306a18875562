// The simulated runtime: a CRI with behaviour, for tests and for hollow nodes.
export {
  type Behaviour,
  does,
  exitsAfter,
  failsToStart,
  ignoresTerm,
  type OnTerm,
  runsForever,
  type SimulatedUsage,
  type Step,
} from "./behaviour.ts";
export type { ExecAnswer, ExecScript } from "./exec.ts";
export { FakeRuntime, type FakeRuntimeOptions, type RestartKeeps } from "./fake-runtime.ts";
export type { ActiveFault, Fault, FaultEffect, FaultPoint } from "./faults.ts";
export type { ImageStore, RegistryImage } from "./image-store.ts";
export { type ServedRuntime, serveRuntime } from "./serve.ts";
