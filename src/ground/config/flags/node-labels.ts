import type { ConfigProblem } from "../agent-config.ts";
import { labelValueProblems, qualifiedNameProblems } from "../text/label-syntax.ts";

/** Kubernetes labels a node may give itself. */
const allowed: readonly string[] = [
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "beta.kubernetes.io/os",
  "failure-domain.beta.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "kubernetes.io/arch",
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/region",
  "topology.kubernetes.io/zone",
];
const allowedDomains: readonly string[] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/** What is wrong with --node-labels; labels reserved for Kubernetes hide bad spelling. */
export function nodeLabelProblems(labels: Readonly<Record<string, string>>): ConfigProblem[] {
  const field = "--node-labels";
  const reserved = Object.keys(labels)
    .filter((key) => isReserved(key))
    .sort();
  if (reserved.length > 0) {
    const message =
      `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${reserved.join(" ")}]; labels of ` +
      `these domains must begin with one of ${allowedDomains.join(", ")} or be one of ${allowed.join(", ")}`;
    return [{ message, field }];
  }
  const invalid = Object.entries(labels).flatMap(([key, value]) => [
    ...spelled(key, qualifiedNameProblems(key)),
    ...spelled(value, labelValueProblems(value)),
  ]);
  return invalid.length === 0 ? [] : [{ message: `invalid node labels: ${invalid.join("; ")}`, field }];
}

function spelled(text: string, problems: readonly string[]): string[] {
  return problems.length === 0 ? [] : [`'${text}' - ${problems.join(", ")}`];
}

function isReserved(key: string): boolean {
  const slash = key.indexOf("/");
  const domain = slash < 0 ? "" : key.slice(0, slash);
  if (!isWithin(domain, "kubernetes.io") && !isWithin(domain, "k8s.io")) return false;
  return !allowed.includes(key) && !allowedDomains.some((parent) => isWithin(domain, parent));
}

function isWithin(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`);
}
