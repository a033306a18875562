import type { Container, ContainerAnnotations, IdentifiedPod, LifecycleHandler } from "../../../ground/model/index.ts";
import { containerHash } from "../../../ground/model/index.ts";

/** Labels by which sandboxes and containers are found again, by us or by another kubelet. */
export const runtimeLabels = {
  podName: "io.kubernetes.pod.name",
  podNamespace: "io.kubernetes.pod.namespace",
  podUid: "io.kubernetes.pod.uid",
  containerName: "io.kubernetes.container.name",
} as const;

const keys = {
  hash: "io.kubernetes.container.hash",
  restartCount: "io.kubernetes.container.restartCount",
  terminationMessagePath: "io.kubernetes.container.terminationMessagePath",
  terminationMessagePolicy: "io.kubernetes.container.terminationMessagePolicy",
  deletionGrace: "io.kubernetes.pod.deletionGracePeriod",
  terminationGrace: "io.kubernetes.pod.terminationGracePeriod",
  preStop: "io.kubernetes.container.preStopHandler",
  ports: "io.kubernetes.container.ports",
} as const;

export function sandboxLabels(pod: IdentifiedPod): Record<string, string> {
  return { ...pod.metadata.labels, ...podIdentityLabels(pod) };
}

export function sandboxAnnotations(pod: IdentifiedPod): Record<string, string> {
  return { ...pod.metadata.annotations };
}

export function containerLabels(pod: IdentifiedPod, container: Container): Record<string, string> {
  return { ...podIdentityLabels(pod), [runtimeLabels.containerName]: container.name };
}

function podIdentityLabels({ metadata }: IdentifiedPod): Record<string, string> {
  return {
    [runtimeLabels.podName]: metadata.name,
    [runtimeLabels.podNamespace]: metadata.namespace,
    [runtimeLabels.podUid]: metadata.uid,
  };
}

/** What must be known of a container even when its pod is forgotten: how to stop it, what it was made from. */
export function containerAnnotations(
  pod: IdentifiedPod,
  container: Container,
  restartCount: number,
  ofDevices: Readonly<Record<string, string>>,
): Record<string, string> {
  const annotations: Record<string, string> = {
    ...ofDevices,
    [keys.hash]: containerHash(container),
    [keys.restartCount]: String(restartCount),
    [keys.terminationMessagePath]: container.terminationMessagePath ?? "",
    [keys.terminationMessagePolicy]: container.terminationMessagePolicy ?? "",
  };
  const { deletionGracePeriodSeconds } = pod.metadata;
  const { terminationGracePeriodSeconds } = pod.spec;
  if (deletionGracePeriodSeconds !== undefined) annotations[keys.deletionGrace] = String(deletionGracePeriodSeconds);
  if (terminationGracePeriodSeconds !== undefined) {
    annotations[keys.terminationGrace] = String(terminationGracePeriodSeconds);
  }
  if (container.lifecycle?.preStop !== undefined) {
    annotations[keys.preStop] = JSON.stringify(container.lifecycle.preStop);
  }
  if (container.ports !== undefined && container.ports.length > 0) {
    annotations[keys.ports] = JSON.stringify(container.ports);
  }
  return annotations;
}

/** Reads the annotations back. What is missing or unreadable counts as not set: any agent may have written it. */
export function parseContainerAnnotations(annotations: Readonly<Record<string, string>>): ContainerAnnotations {
  return {
    hash: annotations[keys.hash] ?? "",
    restartCount: wholeNumber(annotations[keys.restartCount]) ?? 0,
    terminationMessagePath: annotations[keys.terminationMessagePath] ?? "",
    terminationMessagePolicy: annotations[keys.terminationMessagePolicy] ?? "",
    deletionGraceSeconds: wholeNumber(annotations[keys.deletionGrace]),
    terminationGraceSeconds: wholeNumber(annotations[keys.terminationGrace]),
    preStop: parsed(annotations[keys.preStop], isHandler),
    ports: parsed(annotations[keys.ports], isPortList),
  };
}

function wholeNumber(text: string | undefined): number | undefined {
  return text !== undefined && /^[+-]?\d+$/.test(text) ? Number(text) : undefined;
}

function parsed<Value>(text: string | undefined, is: (value: unknown) => value is Value): Value | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return is(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isHandler(value: unknown): value is LifecycleHandler {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isPortList(value: unknown): value is NonNullable<Container["ports"]> {
  return Array.isArray(value) && value.every((port) => typeof port?.containerPort === "number");
}
