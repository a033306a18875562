import { resources } from "../../../src/connections/kube/index.ts";
import type { Container, ContainerStatus, Pod, PodSpec } from "../../../src/ground/model/index.ts";
import type { ClusterPods } from "../cluster-pods.ts";
import { untilTold } from "../raw-runtime.ts";
import { soon } from "../until.ts";
import { asResources, type Wish } from "./wishes.ts";

export type ResizePolicy = "NotRequired" | "RestartContainer";

/** A container that runs until it is told to end, with a policy for both resources. */
export function resizable(
  image: string,
  name: string,
  wish: Wish,
  policy: ResizePolicy,
  more: Partial<Container> = {},
): Container {
  return {
    name,
    image,
    command: [...untilTold],
    resources: asResources(wish),
    resizePolicy: ["cpu", "memory"].map((resourceName) => ({ resourceName, restartPolicy: policy })),
    ...more,
  };
}

/** Asks for other resources of a container, or of the pod as a whole. */
export async function resize(
  cluster: ClusterPods,
  pod: string,
  wishes: Readonly<Record<string, Wish>>,
  ofPod?: PodSpec["resources"],
): Promise<void> {
  const { initContainers = [] } = (await cluster.pod(pod))?.spec ?? {};
  const isInit = (name: string): boolean => initContainers.some((container) => container.name === name);
  const listed = (isWanted: (name: string) => boolean) =>
    Object.entries(wishes)
      .filter(([name]) => isWanted(name))
      .map(([name, wish]) => ({ name, resources: asResources(wish) }));
  const [init, regular] = [listed(isInit), listed((name) => !isInit(name))];
  const body = {
    spec: {
      ...(init.length === 0 ? {} : { initContainers: init }),
      ...(regular.length === 0 ? {} : { containers: regular }),
      ...(ofPod === undefined ? {} : { resources: ofPod }),
    },
  };
  const ref = { namespace: "default", name: pod, subresource: "resize" };
  await cluster.admin.patch(resources.pods, ref, { type: "strategic", body }, soon());
}

export function containerStatus({ status }: Pod, container: string): ContainerStatus | undefined {
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  return all.find(({ name }) => name === container);
}

/** The conditions that tell of a resize, as "type reason". */
export function resizeConditions({ status }: Pod): readonly string[] {
  return (status?.conditions ?? [])
    .filter(({ type }) => type.startsWith("PodResize"))
    .map(({ type, reason = "" }) => `${type} ${reason}`.trim());
}

/** The wish is shown as fulfilled, and nothing is said to be under way. */
export function hasSettled(pod: Pod, container: string, wish: Wish, restarts = 0): boolean {
  const found = containerStatus(pod, container);
  const wanted = asResources(wish);
  return (
    found?.state?.running !== undefined &&
    found.restartCount >= restarts &&
    includes(found.resources?.requests, wanted.requests) &&
    includes(found.resources?.limits, wanted.limits) &&
    includes(found.allocatedResources, wanted.requests) &&
    resizeConditions(pod).length === 0
  );
}

function includes(
  found: Readonly<Record<string, string>> | undefined,
  wanted: Readonly<Record<string, string>> | undefined,
): boolean {
  return Object.entries(wanted ?? {}).every(([name, amount]) => found?.[name] === amount);
}

/** The container's id as the runtime knows it. */
export function runtimeId(pod: Pod, container: string): string {
  return containerStatus(pod, container)?.containerID?.replace(/^.*:\/\//, "") ?? "";
}
