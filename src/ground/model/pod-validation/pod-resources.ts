import type { PodSpec } from "../kube/gen/types.ts";
import { sumOfContainers } from "../pod-resources.ts";
import type { ProblemList } from "../problem.ts";
import { tryParseQuantity } from "../quantity.ts";
import { canonicalQuantity, formatOf, formatQuantity } from "../quantity-format.ts";
import { isHugePages } from "../resource-list.ts";
import { checkPodLevelResources } from "./resources.ts";

/** Resources of the pod as a whole, and how they go together with those of its containers. */
export function checkPodResources(spec: PodSpec, problems: ProblemList): void {
  if (spec.resources === undefined) return;
  if (spec.os?.name === "windows") {
    problems.forbidden("spec.resources", "may not be set for a windows pod");
    return;
  }
  checkPodLevelResources(spec.resources, "spec.resources", problems);
  if (!everyQuantityParses(spec)) return;
  checkAggregate(spec, "requests", () => true, problems);
  checkAggregate(spec, "limits", isHugePages, problems);
  checkContainerLimits(spec, problems);
}

function everyQuantityParses({ containers, initContainers = [], resources }: PodSpec): boolean {
  const lists = [...containers, ...initContainers, { resources }].flatMap(({ resources: own }) => [
    own?.limits ?? {},
    own?.requests ?? {},
  ]);
  return lists.every((list) => Object.values(list).every((text) => tryParseQuantity(text) !== undefined));
}

function checkAggregate(
  spec: PodSpec,
  side: "requests" | "limits",
  applies: (name: string) => boolean,
  problems: ProblemList,
): void {
  for (const [name, sum] of sumOfContainers(spec, side)) {
    const own = spec.resources?.[side]?.[name];
    if (own === undefined || !applies(name)) continue;
    if (sum <= (tryParseQuantity(own) ?? 0n)) continue;
    problems.invalid(
      `spec.resources.${side}[${name}]`,
      canonicalQuantity(own),
      `must be greater than or equal to aggregate container ${side} of ${formatQuantity(sum, formatOf(own))}`,
    );
  }
}

function checkContainerLimits(spec: PodSpec, problems: ProblemList): void {
  for (const [index, { resources }] of spec.containers.entries()) {
    for (const [name, limit] of Object.entries(resources?.limits ?? {})) {
      const own = spec.resources?.limits?.[name];
      if (own === undefined || (tryParseQuantity(limit) ?? 0n) <= (tryParseQuantity(own) ?? 0n)) continue;
      problems.invalid(
        `spec.containers[${index}].resources.limits[${name}]`,
        canonicalQuantity(limit),
        `must be less than or equal to pod limits of ${canonicalQuantity(own)}`,
      );
    }
  }
}
