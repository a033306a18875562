import { oncePer } from "../base/index.ts";
import type { PodUid } from "./ids.ts";
import type { Container, EphemeralContainer, Pod } from "./kube/gen/types.ts";

/** A pod whose identity is complete: what sources hand on and everything behind them relies on. */
export interface IdentifiedPod extends Pod {
  readonly metadata: NonNullable<Pod["metadata"]> & {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
  };
  readonly spec: NonNullable<Pod["spec"]>;
}

export const configSourceAnnotation = "kubernetes.io/config.source";
export const configSeenAnnotation = "kubernetes.io/config.seen";
export const configHashAnnotation = "kubernetes.io/config.hash";
export const configMirrorAnnotation = "kubernetes.io/config.mirror";

/** Priorities from here up mark a critical pod. */
const systemCriticalPriority = 2_000_000_000;

export function uidOf(pod: IdentifiedPod): PodUid {
  return pod.metadata.uid as PodUid;
}

/** `name_namespace`, unique among the pods of a node at one time. */
export function fullName(pod: IdentifiedPod): string {
  return `${pod.metadata.name}_${pod.metadata.namespace}`;
}

/** `name_namespace(uid)`, the form that users know from the kubelet's messages. */
export function describePod(pod: IdentifiedPod): string {
  return `${fullName(pod)}(${pod.metadata.uid})`;
}

export function isMirrorPod(pod: Pod): boolean {
  return pod.metadata?.annotations?.[configMirrorAnnotation] !== undefined;
}

export function isStaticPod(pod: Pod): boolean {
  const source = pod.metadata?.annotations?.[configSourceAnnotation];
  return source !== undefined && source !== "api";
}

export function isCriticalPod(pod: Pod): boolean {
  return isStaticPod(pod) || isMirrorPod(pod) || (pod.spec?.priority ?? 0) >= systemCriticalPriority;
}

/** An init container that keeps running beside the regular ones. */
export function isSidecar(container: Container): boolean {
  return container.restartPolicy === "Always";
}

export type ContainerKind = "init" | "sidecar" | "regular" | "ephemeral";

export interface PodContainer {
  readonly kind: ContainerKind;
  readonly container: Container;
}

/** Every container of the spec with its kind: init and sidecars in spec order, then regular, then ephemeral. */
export function containersOf(pod: IdentifiedPod): readonly PodContainer[] {
  return containersIn(pod.spec);
}

/** The container of that name, whatever its kind. */
export function containerNamed(pod: IdentifiedPod, name: string): PodContainer | undefined {
  return containersByName(pod.spec).get(name);
}

// Asked for each container of a pod, of which it may have 20,000.
const containersIn = oncePer((spec: IdentifiedPod["spec"]): readonly PodContainer[] => {
  const { initContainers = [], containers, ephemeralContainers = [] } = spec;
  return [
    ...listOf(initContainers).map(
      (container) => ({ kind: isSidecar(container) ? "sidecar" : "init", container }) as const,
    ),
    ...listOf(containers).map((container) => ({ kind: "regular", container }) as const),
    ...listOf(ephemeralContainers).map(
      (container) => ({ kind: "ephemeral", container: asContainer(container) }) as const,
    ),
  ];
});

const containersByName = oncePer((spec: IdentifiedPod["spec"]): ReadonlyMap<string, PodContainer> => {
  // The first of a name counts, and the last one set stays.
  return new Map(
    containersIn(spec)
      .toReversed()
      .map((entry) => [entry.container.name, entry]),
  );
});

function asContainer(container: EphemeralContainer): Container {
  const { targetContainerName: _, ...rest } = container;
  return rest;
}

/** How events and messages point at a container of a pod. */
export function fieldPathOf(kind: ContainerKind, name: string): string {
  switch (kind) {
    case "init":
    case "sidecar":
      return `spec.initContainers{${name}}`;
    case "regular":
      return `spec.containers{${name}}`;
    case "ephemeral":
      return `spec.ephemeralContainers{${name}}`;
  }
}

/** A pod that nobody has checked may have anything in place of a list: that lists nothing. */
function listOf<Item>(list: readonly Item[]): readonly Item[] {
  return Array.isArray(list) ? (list as readonly Item[]) : [];
}
