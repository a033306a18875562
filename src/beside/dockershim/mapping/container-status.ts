import { Container, type ContainerFilter, ContainerState, ContainerStatus } from "../../../connections/cri/index.ts";
import { cutText } from "../../../ground/base/index.ts";
import type { EngineImage, InspectedContainer, ListedContainer } from "../engine/index.ts";
import { createdAtOf, givenTexts, imageLabel, logPathLabel, sandboxIdLabel } from "./labels.ts";
import { mountMessage } from "./mounts.ts";
import { parseName } from "./names.ts";
import { limitsOf } from "./resources.ts";
import { signalOf } from "./signals.ts";

/** The code that says a program could not be started at all; Docker's 126 or 127 could be the program's own. */
const startErrorCode = 128;
const longestMessage = 8 * 1024;

/** Where a container is in its life, as CRI tells it. */
export type Life =
  | { readonly step: "created" }
  | { readonly step: "running"; readonly startedAt: bigint }
  | {
      readonly step: "exited";
      readonly startedAt: bigint;
      readonly finishedAt: bigint;
      readonly exitCode: number;
      readonly reason: "OOMKilled" | "Completed" | "Error" | "StartError";
      readonly message: string;
    };

const states = {
  created: ContainerState.CONTAINER_CREATED,
  running: ContainerState.CONTAINER_RUNNING,
  exited: ContainerState.CONTAINER_EXITED,
} as const;

/**
 * Docker keeps a container that could not be started as "created", with a code and a reason. What is paused or being
 * restarted by hand still has its process.
 */
export function lifeOf({ state, createdAt, labels }: InspectedContainer): Life {
  if (state.running) return { step: "running", startedAt: state.startedAt };
  const madeAt = createdAtOf(labels, createdAt);
  const message = cutText(state.error, longestMessage);
  if (state.finishedAt === 0n) {
    if (state.exitCode === 0 && state.error === "") return { step: "created" };
    return {
      step: "exited",
      startedAt: 0n,
      finishedAt: madeAt,
      exitCode: startErrorCode,
      reason: "StartError",
      message,
    };
  }
  // The two come from different clocks of Docker's: a short life may seem to end before it begins.
  const finishedAt = state.finishedAt > state.startedAt ? state.finishedAt : state.startedAt + 1n;
  const { exitCode, startedAt } = state;
  const reason = state.oomKilled ? "OOMKilled" : exitCode === 0 ? "Completed" : "Error";
  return { step: "exited", startedAt, finishedAt, exitCode, reason, message };
}

/** What can be told from a list; undefined: a closer look is needed. */
export function listedStep({ state }: ListedContainer): Life["step"] | undefined {
  switch (state) {
    case "running":
    case "paused":
    case "restarting":
      return "running";
    case "exited":
    case "dead":
    case "removing":
      return "exited";
    case "created":
    case "":
      return undefined;
  }
}

export function criContainer(listed: ListedContainer, step: Life["step"]): Container | undefined {
  const name = parseName(listed.name);
  if (name === undefined) return undefined;
  return Container.fromPartial({
    id: listed.id,
    podSandboxId: listed.labels[sandboxIdLabel] ?? "",
    metadata: { name: name.container, attempt: name.attempt },
    image: { image: listed.labels[imageLabel] || listed.image },
    imageRef: listed.imageId,
    imageId: listed.imageId,
    state: states[step],
    createdAt: createdAtOf(listed.labels, listed.createdAt),
    ...givenTexts(listed.labels),
  });
}

/** `image`: undefined when it is not there any more. */
export function criContainerStatus(container: InspectedContainer, image: EngineImage | undefined): ContainerStatus {
  const name = parseName(container.name);
  const life = lifeOf(container);
  return ContainerStatus.fromPartial({
    id: container.id,
    metadata: { name: name?.container ?? "", attempt: name?.attempt ?? 0 },
    state: states[life.step],
    createdAt: createdAtOf(container.labels, container.createdAt),
    ...(life.step === "running" && { startedAt: life.startedAt }),
    ...(life.step === "exited" && exitFields(life)),
    image: { image: image?.tags[0] ?? container.labels[imageLabel] ?? container.config.image },
    imageRef: imageRefOf(container.imageId, image),
    imageId: container.imageId,
    ...givenTexts(container.labels),
    mounts: container.host.mounts.map(mountMessage),
    logPath: container.labels[logPathLabel] ?? "",
    resources: { linux: limitsOf(container.host.resources) },
    stopSignal: signalOf(container.config.stopSignal),
  });
}

function exitFields({ startedAt, finishedAt, exitCode, reason, message }: Extract<Life, { step: "exited" }>) {
  return { startedAt, finishedAt, exitCode, reason, message };
}

/** As users know it from the status of pods on Docker. */
export function imageRefOf(imageId: string, image: EngineImage | undefined): string {
  const digest = image?.digests[0];
  return digest === undefined ? `docker://${imageId}` : `docker-pullable://${digest}`;
}

export function fitsContainer(container: Container, filter: ContainerFilter | undefined): boolean {
  if (filter === undefined) return true;
  return (
    container.id.startsWith(filter.id) &&
    (filter.podSandboxId === "" || container.podSandboxId === filter.podSandboxId) &&
    (filter.state === undefined || container.state === filter.state.state) &&
    hasLabels(container.labels, filter.labelSelector)
  );
}

export function hasLabels(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}

/** CRI's word for the state, as it is in messages. */
export function stateWord(life: Life): string {
  return `CONTAINER_${life.step.toUpperCase()}`;
}
