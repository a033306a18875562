import {
  Container,
  ContainerState,
  ContainerStatus,
  NamespaceMode,
  PodSandbox,
  PodSandboxState,
  PodSandboxStatus,
} from "../../connections/cri/index.ts";
import type { ContainerRecord, SandboxRecord } from "./records.ts";

export const containerStates = {
  created: ContainerState.CONTAINER_CREATED,
  running: ContainerState.CONTAINER_RUNNING,
  exited: ContainerState.CONTAINER_EXITED,
} as const;

export const sandboxStates = {
  ready: PodSandboxState.SANDBOX_READY,
  notReady: PodSandboxState.SANDBOX_NOTREADY,
} as const;

export function usesNodeNetwork({ config }: Pick<SandboxRecord, "config">): boolean {
  return config.linux?.securityContext?.namespaceOptions?.network === NamespaceMode.NODE;
}

export function sandboxMessage({ id, config, state, createdAt, runtimeHandler }: SandboxRecord): PodSandbox {
  const { metadata, labels, annotations } = config;
  return PodSandbox.fromPartial({
    id,
    metadata,
    state: sandboxStates[state],
    createdAt,
    labels,
    annotations,
    runtimeHandler,
  });
}

export function sandboxStatusMessage(sandbox: SandboxRecord): PodSandboxStatus {
  const { id, config, state, createdAt, runtimeHandler, ip } = sandbox;
  const { metadata, labels, annotations } = config;
  return PodSandboxStatus.fromPartial({
    id,
    metadata,
    state: sandboxStates[state],
    createdAt,
    network: { ip: ip ?? "" },
    linux: { namespaces: { options: config.linux?.securityContext?.namespaceOptions } },
    labels,
    annotations,
    runtimeHandler,
  });
}

export function containerMessage({ id, sandbox, config, image, life, createdAt }: ContainerRecord): Container {
  return Container.fromPartial({
    id,
    podSandboxId: sandbox.id,
    metadata: config.metadata,
    image: config.image,
    imageRef: image.id,
    state: containerStates[life.step],
    createdAt,
    labels: config.labels,
    annotations: config.annotations,
  });
}

export function containerStatusMessage(container: ContainerRecord): ContainerStatus {
  const { id, config, image, life, createdAt, logPath, resources } = container;
  return ContainerStatus.fromPartial({
    id,
    metadata: config.metadata,
    state: containerStates[life.step],
    createdAt,
    ...(life.step === "running" ? { startedAt: life.startedAt } : {}),
    ...(life.step === "exited" ? exitFields(life) : {}),
    image: { image: image.tags[0] ?? config.image?.image ?? "" },
    imageRef: image.digests[0] ?? image.id,
    labels: config.labels,
    annotations: config.annotations,
    mounts: config.mounts,
    logPath,
    resources: resources && { linux: resources },
  });
}

function exitFields({
  startedAt,
  finishedAt,
  exitCode,
  reason,
  message,
}: Extract<ContainerRecord["life"], { step: "exited" }>) {
  return { startedAt, finishedAt, exitCode, reason, message };
}
