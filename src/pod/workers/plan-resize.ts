import {
  type Container,
  type ContainerResources,
  changedResources,
  type ObservedContainer,
  type ResizableResource,
} from "../../ground/model/index.ts";

/** A running container that is to have other resources than it was given. */
export interface ContainerResize {
  readonly running: ObservedContainer;
  readonly container: Container;
  /** What it was given. */
  readonly given: ContainerResources;
  readonly changed: readonly ResizableResource[];
}

/** What a running container was given; undefined: nobody knows, and what it was promised is believed. */
export type GivenResources = (running: ObservedContainer) => ContainerResources | undefined;

/** The resize that a running container needs, if any. */
export function resizeFor(
  container: Container,
  running: ObservedContainer,
  givenTo: GivenResources,
): ContainerResize | undefined {
  const given = givenTo(running) ?? container.resources ?? {};
  const changed = changedResources(given, container.resources);
  return changed.length === 0 ? undefined : { running, container, given, changed };
}

/** Whether the container says of a resource that changes that it has to start anew to notice. */
export function needsRestart({ container: { resizePolicy = [] }, changed }: ContainerResize): boolean {
  return resizePolicy.some(
    ({ resourceName, restartPolicy }) =>
      restartPolicy === "RestartContainer" && changed.some((resource) => resource === resourceName),
  );
}
