import type { CloudFacts } from "./ports.ts";

/** Of both generations, by what they say. */
const names = {
  zone: ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"],
  region: ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"],
  instanceType: ["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"],
} as const;

export const cloudLabelNames: readonly string[] = Object.values(names).flat();

/** A cloud that does not say something leaves its labels as they are. */
export function cloudLabels(facts: CloudFacts): Readonly<Record<string, string>> {
  const rows = (["zone", "region", "instanceType"] as const).flatMap((what) =>
    facts[what] === "" ? [] : names[what].map((name) => [name, facts[what]] as const),
  );
  return Object.fromEntries(rows);
}
