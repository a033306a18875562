import type { Container, Pod } from "./kube/gen/types.ts";

export const defaultGraceSeconds = 30;

/** How long the pod's containers may take to end, by its own word. */
export function ownGraceSeconds({ spec }: Pod): number {
  return spec?.terminationGracePeriodSeconds ?? defaultGraceSeconds;
}

/** The same, once whoever deleted the pod has had a say. */
export function graceSecondsOf(pod: Pod): number {
  return pod.metadata?.deletionGracePeriodSeconds ?? ownGraceSeconds(pod);
}

/** The grace a container gets when only it is stopped, because of a failed probe or a changed definition. */
export function containerGraceSeconds(
  pod: Pod,
  container: Container | undefined,
  because: "definitionChanged" | "unknownState" | "livenessProbe" | "startupProbe" | "resized" | "restartAllContainers",
): number {
  if (because === "restartAllContainers") return 0;
  const { deletionGracePeriodSeconds } = pod.metadata ?? {};
  if (deletionGracePeriodSeconds !== undefined) return deletionGracePeriodSeconds;
  const probe =
    because === "livenessProbe"
      ? container?.livenessProbe
      : because === "startupProbe"
        ? container?.startupProbe
        : undefined;
  return probe?.terminationGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? 2;
}
