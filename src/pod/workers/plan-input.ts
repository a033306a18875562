import type { Container, IdentifiedPod, ObservedContainer, ObservedPod } from "../../ground/model/index.ts";
import type { GivenResources } from "./plan-resize.ts";

/** All that a plan is made from. */
export interface PlanInput {
  readonly pod: IdentifiedPod;
  readonly observed: ObservedPod;
  readonly probes: ProbeResults;
  readonly hashOf: (container: Container) => string;
  /** What running containers were given. */
  readonly givenTo: GivenResources;
}

/** What the probes last said of a container instance; undefined when it has no such probe or no result yet. */
export interface ProbeResults {
  liveness(container: ObservedContainer): "success" | "failure" | "unknown" | undefined;
  startup(container: ObservedContainer): "success" | "failure" | "unknown" | undefined;
}
