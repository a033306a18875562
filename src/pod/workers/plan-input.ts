import type {
  Container,
  GivenResources,
  IdentifiedPod,
  ObservedContainer,
  ObservedPod,
} from "../../ground/model/index.ts";

/** All that a plan is made from. */
export interface PlanInput {
  readonly pod: IdentifiedPod;
  readonly observed: ObservedPod;
  readonly probes: ProbeResults;
  readonly hashOf: (container: Container) => string;
  /** Whether a container was killed so that another one takes its place, whatever its restart policy says of its end. */
  readonly isReplaced?: (container: ObservedContainer) => boolean;
  /** What running containers and the pod as a whole were given. */
  readonly given: GivenResources;
}

/** What the probes last said of a container instance; undefined when it has no such probe or no result yet. */
export interface ProbeResults {
  liveness(container: ObservedContainer): "success" | "failure" | "unknown" | undefined;
  startup(container: ObservedContainer): "success" | "failure" | "unknown" | undefined;
}
