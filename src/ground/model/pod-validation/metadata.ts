import type { Pod } from "../kube/gen/types.ts";
import { configMirrorAnnotation } from "../pod.ts";
import type { ProblemList } from "../problem.ts";
import { checkAnnotations, checkLabels } from "./labels.ts";
import { dnsLabel, dnsSubdomain, nonNegative, qualifiedName } from "./names.ts";

type Metadata = NonNullable<Pod["metadata"]>;

/** Whether objects of a kind stand in a namespace or belong to the whole cluster. */
export type Scope = "namespaced" | "cluster";

export function checkMetadata(metadata: Metadata, problems: ProblemList, scope: Scope = "namespaced"): void {
  const { name = "", generateName = "", namespace = "", generation = 0 } = metadata;
  if (generateName !== "") {
    problems.invalidEach("metadata.generateName", generateName, dnsSubdomain(maskTrailingDash(generateName)));
  }
  if (name === "") problems.required("metadata.name", "name or generateName is required");
  else problems.invalidEach("metadata.name", name, dnsSubdomain(name));
  if (scope === "cluster") {
    if (namespace !== "") problems.forbidden("metadata.namespace", "not allowed on this type");
  } else if (namespace === "") problems.required("metadata.namespace");
  else problems.invalidEach("metadata.namespace", namespace, dnsLabel(namespace));
  problems.invalidEach("metadata.generation", generation, nonNegative(generation));
  checkLabels(metadata.labels, "metadata.labels", problems);
  checkAnnotations(metadata.annotations, "metadata.annotations", problems);
  checkOwners(metadata, problems);
  checkFinalizers(metadata.finalizers ?? [], problems);
}

/** A generated name goes on after the dash. */
function maskTrailingDash(name: string): string {
  return name.length > 1 && name.endsWith("-") ? `${name.slice(0, -1)}a` : name;
}

function checkOwners({ ownerReferences = [] }: Metadata, problems: ProblemList): void {
  for (const [index, owner] of ownerReferences.entries()) {
    const at = `metadata.ownerReferences[${index}]`;
    if (owner.apiVersion === "") problems.invalid(`${at}.apiVersion`, "", "version must not be empty");
    if (owner.kind === "") problems.invalid(`${at}.kind`, "", "must not be empty");
    if (owner.name === "") problems.invalid(`${at}.name`, "", "must not be empty");
    if (owner.uid === "") problems.invalid(`${at}.uid`, "", "must not be empty");
    if (owner.apiVersion === "v1" && owner.kind === "Event") {
      problems.invalid(at, owner, "/v1, Kind=Event is disallowed from being an owner");
    }
  }
  const [first, second] = ownerReferences.filter(({ controller }) => controller === true);
  if (first === undefined || second === undefined) return;
  problems.invalid(
    "metadata.ownerReferences",
    ownerReferences,
    `Only one reference can have Controller set to true. Found "true" in references for ${first.kind}/${first.name} and ${second.kind}/${second.name}`,
  );
}

function checkFinalizers(finalizers: readonly string[], problems: ProblemList): void {
  for (const finalizer of finalizers) {
    problems.invalidEach("metadata.finalizers", finalizer, qualifiedName(finalizer));
  }
  if (finalizers.includes("orphan") && finalizers.includes("foregroundDeletion")) {
    problems.invalid("metadata.finalizers", finalizers, "finalizer orphan and foregroundDeletion cannot be both set");
  }
}

const deletionCostAnnotation = "controller.kubernetes.io/pod-deletion-cost";

/** Annotations that mean something to Kubernetes, except those of security profiles. */
export function checkKnownAnnotations({ metadata, spec }: Pod, problems: ProblemList): void {
  const annotations = metadata?.annotations ?? {};
  const mirror = annotations[configMirrorAnnotation];
  if (mirror !== undefined && !spec?.nodeName) {
    problems.invalid(
      `metadata.annotations[${configMirrorAnnotation}]`,
      mirror,
      "must set spec.nodeName if mirror pod annotation is set",
    );
  }
  const cost = annotations[deletionCostAnnotation];
  if (cost !== undefined && !isInt32(cost)) {
    problems.invalid(`metadata.annotations[${deletionCostAnnotation}]`, cost, "must be a 32bit integer");
  }
}

function isInt32(text: string): boolean {
  if (!/^(0|-?[1-9]\d{0,9})$/.test(text)) return false;
  const value = Number(text);
  return value >= -(2 ** 31) && value < 2 ** 31;
}
