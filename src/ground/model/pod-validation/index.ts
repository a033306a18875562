// Whether a pod, after defaulting, is one that the API would accept; every problem is named, not only the first.
import type { ObjectMeta, Pod } from "../kube/gen/types.ts";
import { type Problem, ProblemList } from "../problem.ts";
import { checkContainers } from "./containers.ts";
import { checkKnownAnnotations, checkMetadata, type Scope } from "./metadata.ts";
import { checkPodSpec, checkResourceClaims } from "./pod-spec.ts";
import { checkProfileAnnotations } from "./security-profiles.ts";
import { checkVolumes } from "./volumes.ts";

export { configKey as configKeyProblems, labelValue, qualifiedName } from "./names.ts";

/** As strict as the API is for a new pod with every optional relaxation off. Never throws. */
export function validatePod(pod: Pod): readonly Problem[] {
  const problems = new ProblemList();
  checkMetadata(pod.metadata ?? {}, problems);
  checkKnownAnnotations(pod, problems);
  checkProfileAnnotations(pod, problems);
  if (pod.spec === undefined) {
    problems.required("spec");
    return problems.problems;
  }
  const volumes = checkVolumes(pod, problems);
  const claimNames = checkResourceClaims(pod.spec.resourceClaims ?? [], "spec.resourceClaims", problems);
  checkContainers({ spec: pod.spec, volumes, claimNames }, problems);
  checkPodSpec(pod.spec, volumes, problems);
  return problems.problems;
}

/** What every API object must hold to in its metadata, whatever its kind. */
export function validateMetadata(metadata: ObjectMeta, scope: Scope): readonly Problem[] {
  const problems = new ProblemList();
  checkMetadata(metadata, problems, scope);
  return problems.problems;
}
