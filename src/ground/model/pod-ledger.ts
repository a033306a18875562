import type { Ledger } from "../base/index.ts";
import type { PodUid } from "./ids.ts";

/** The steps of a pod's life, as its ledger records them; `nodelet why` and `nodelet blame` print them. */
export type PodStep =
  | "seen"
  | "admitted"
  | "cgroup"
  | "volumes"
  | "claims"
  | "sandbox"
  | "pull"
  | "create"
  | "start"
  | "hook"
  | "probe"
  | "running"
  | "ready"
  | "exit"
  | "status"
  | "kill"
  | "stop"
  | "cleanup"
  | "gone";

/** The history of every pod. A step is about a container, an image or a probe, or about the whole pod. */
export type PodLedger = Ledger<PodUid, PodStep>;
