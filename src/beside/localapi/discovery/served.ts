import { kinds, type Subresource } from "../kinds/index.ts";

/** A resource as clients are told of it. */
export interface ServedResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly verbs: readonly string[];
  readonly subresources: readonly Subresource[];
}

const storedVerbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/** Questions that are answered on the spot and not stored. */
function review(group: string, kind: string, plural: string, namespaced = false): ServedResource {
  const singular = kind.toLowerCase();
  const none = { shortNames: [], categories: [], subresources: [] };
  return { group, version: "v1", kind, plural, singular, namespaced, verbs: ["create"], ...none };
}

/** What others measure. */
function measured(kind: string, plural: string, namespaced: boolean): ServedResource {
  const none = { shortNames: [], categories: [], subresources: [] };
  return {
    group: "metrics.k8s.io",
    version: "v1beta1",
    kind,
    plural,
    singular: "",
    namespaced,
    verbs: ["get", "list"],
    ...none,
  };
}

const servedResources: readonly ServedResource[] = [
  ...kinds.map((kind) => ({ ...kind, verbs: storedVerbs })),
  review("authentication.k8s.io", "TokenReview", "tokenreviews"),
  review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
  review("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", true),
  review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
  review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews"),
  measured("NodeMetrics", "nodes", false),
  measured("PodMetrics", "pods", true),
];

/** Groups in the order in which clients should look for a name that several have; each has one version. */
export const servedGroups: readonly { readonly group: string; readonly version: string }[] = [
  ...new Map(servedResources.map(({ group, version }) => [group, { group, version }])).values(),
];

export function resourcesOf(group: string, version: string): readonly ServedResource[] {
  return servedResources.filter((resource) => resource.group === group && resource.version === version);
}
