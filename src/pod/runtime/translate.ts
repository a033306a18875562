import {
  ContainerState,
  type ContainerStatus,
  NamespaceMode,
  PodSandboxState,
  type PodSandboxStatus,
} from "../../connections/cri/index.ts";
import { cutText } from "../../ground/base/index.ts";
import {
  type ContainerId,
  configSourceAnnotation,
  type ObservedContainer,
  type ObservedResources,
  type ObservedSandbox,
  type SandboxId,
} from "../../ground/model/index.ts";
import { parseContainerAnnotations } from "./mapping/index.ts";

/** A status shows no more of it, and what is observed of a pod is kept for as long as the pod is. */
const longestMessageBytes = 12 * 1024;
const longestReasonBytes = 1024;

export function translateSandbox(status: PodSandboxStatus): ObservedSandbox {
  const isOnHostNetwork = status.linux?.namespaces?.options?.network === NamespaceMode.NODE;
  return {
    id: status.id as SandboxId,
    attempt: status.metadata?.attempt ?? 0,
    state: translateSandboxState(status.state),
    createdAt: milliseconds(status.createdAt),
    network: isOnHostNetwork ? "node" : "pod",
    ip: status.network?.ip,
    additionalIps: status.network?.additionalIps.map(({ ip }) => ip) ?? [],
    runtimeHandler: status.runtimeHandler,
    podSource: status.annotations[configSourceAnnotation],
  };
}

/** The sandbox comes from the listing, because a container's status does not name it. */
export function translateContainer(status: ContainerStatus, sandboxId: SandboxId): ObservedContainer {
  const user = status.user?.linux;
  return {
    id: status.id as ContainerId,
    sandboxId,
    name: status.metadata?.name ?? "",
    attempt: status.metadata?.attempt ?? 0,
    ...stateOf(status),
    createdAt: milliseconds(status.createdAt),
    startedAt: milliseconds(status.startedAt),
    finishedAt: milliseconds(status.finishedAt),
    exitCode: status.exitCode,
    reason: cutText(status.reason, longestReasonBytes),
    message: cutText(status.message, longestMessageBytes),
    image: status.image?.image ?? "",
    imageRef: status.imageRef,
    imageId: status.imageId || status.imageRef,
    logPath: status.logPath,
    annotations: parseContainerAnnotations(status.annotations),
    mounts: status.mounts.map(({ containerPath, hostPath }) => ({ containerPath, hostPath })),
    resources: observedResources(status),
    user: user && {
      uid: Number(user.uid),
      gid: Number(user.gid),
      supplementalGroups: user.supplementalGroups.map(Number),
    },
  };
}

/** An agent that ends takes its calls along, and containerd then tells of a container that failed to start. */
function stateOf(status: ContainerStatus): Pick<ObservedContainer, "state" | "startCutOff"> {
  const state = translateContainerState(status.state);
  if (state !== "exited" || status.reason !== "StartError" || status.startedAt > 0n) return { state };
  // What runc complains of may have any words of the pod's in it.
  if (status.message.includes("OCI runtime") || !callerGone.test(status.message)) return { state };
  const hadProcess = !status.message.startsWith("failed to create containerd task: ");
  return { state: hadProcess ? state : "created", startCutOff: true };
}

const callerGone = /: (context canceled|failed to start shim: start failed: .*: signal: killed)(: unknown)?$/s;

function observedResources(status: ContainerStatus): ObservedResources | undefined {
  const linux = status.resources?.linux;
  return (
    linux && {
      cpuShares: Number(linux.cpuShares),
      cpuQuota: Number(linux.cpuQuota),
      cpuPeriod: Number(linux.cpuPeriod),
      memoryLimitBytes: linux.memoryLimitInBytes,
    }
  );
}

export function translateSandboxState(state: PodSandboxState): ObservedSandbox["state"] {
  return state === PodSandboxState.SANDBOX_READY ? "ready" : "notReady";
}

export function translateContainerState(state: ContainerState): ObservedContainer["state"] {
  switch (state) {
    case ContainerState.CONTAINER_CREATED:
      return "created";
    case ContainerState.CONTAINER_RUNNING:
      return "running";
    case ContainerState.CONTAINER_EXITED:
      return "exited";
    default:
      return "unknown";
  }
}

/** Some runtimes write "no time" as a moment long before 1970. */
function milliseconds(nanoseconds: bigint): number {
  return nanoseconds <= 0n ? 0 : Number(nanoseconds / 1_000_000n);
}
