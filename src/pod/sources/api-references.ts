import { type ApiReference, apiReferences, type Pod, type PodSpec, type Problem } from "../../ground/model/index.ts";

/** What a pod from a manifest may refer to although it lives outside the pod. */
export interface ApiReferencePolicy {
  /** Off: only what can never work without the API is refused. Follows the gate PreventStaticPodAPIReferences. */
  readonly prevent: boolean;
  /** Kinds that are known on this machine without an API server, such as config maps from local manifests. */
  readonly allow: readonly ("configmaps" | "secrets")[];
}

/** Why this pod cannot run from a manifest, or undefined. Only the first reason is given. */
export function apiReferenceProblem({ spec }: Pod, policy: ApiReferencePolicy): Problem | undefined {
  if (spec === undefined) return undefined;
  if (!policy.prevent) return withoutGate(spec);
  const isAllowed = ({ kind }: ApiReference): boolean => kind !== "other" && policy.allow.includes(kind);
  const reference = apiReferences(spec).find((found) => !isAllowed(found));
  return reference && problem(reference.field, `static pods may not reference ${reference.resource}`);
}

function withoutGate(spec: PodSpec): Problem | undefined {
  for (const [index, { projected }] of (spec.volumes ?? []).entries()) {
    const bundle = (projected?.sources ?? []).findIndex(({ clusterTrustBundle }) => clusterTrustBundle !== undefined);
    if (bundle < 0) continue;
    return problem(
      `spec.volumes[${index}].projected.sources[${bundle}].clusterTrustBundle`,
      "static pods may not use ClusterTrustBundle projected volume sources",
    );
  }
  if ((spec.resourceClaims ?? []).length === 0) return undefined;
  return problem("spec.resourceClaims", "static pods may not use ResourceClaims");
}

function problem(field: string, message: string): Problem {
  return { severity: "error", field, message };
}
