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

const listedSandboxes = new WeakMap<SandboxRecord, PodSandbox>();
const listedContainers = new WeakMap<ContainerRecord, Container>();

export function usesNodeNetwork({ config }: Pick<SandboxRecord, "config">): boolean {
  return config.linux?.securityContext?.namespaceOptions?.network === NamespaceMode.NODE;
}

/** In a list of all, most are as they were in the list before. */
export function sandboxMessage(sandbox: SandboxRecord): PodSandbox {
  const before = listedSandboxes.get(sandbox);
  if (before !== undefined && before.state === sandboxStates[sandbox.state]) return before;
  const { id, config, state, createdAt, runtimeHandler } = sandbox;
  const { metadata, labels, annotations } = config;
  const message = PodSandbox.fromPartial({
    id,
    metadata,
    state: sandboxStates[state],
    createdAt,
    labels,
    annotations,
    runtimeHandler,
  });
  listedSandboxes.set(sandbox, message);
  return message;
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

export function containerMessage(container: ContainerRecord): Container {
  const before = listedContainers.get(container);
  if (before !== undefined && before.state === containerStates[container.life.step]) return before;
  const { id, sandbox, config, image, life, createdAt } = container;
  const message = Container.fromPartial({
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
  listedContainers.set(container, message);
  return message;
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
