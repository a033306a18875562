import { aFewAtOnce, mapAtMost } from "../../ground/base/index.ts";
import {
  amountIn,
  type ContainerResources,
  type IdentifiedPod,
  type ResizableResource,
  resizableResources,
  uidOf,
  withAmountsOf,
} from "../../ground/model/index.ts";
import type { ContainerResize, ResizePlan } from "./plan-resize.ts";
import type { ResizePort } from "./ports.ts";

/**
 * Gives a pod and its running containers what they were promised. The pod's own limit must never be below what its
 * containers may use: it is raised before them and lowered after them, and among containers those go first that give
 * something back. The first failure ends it; what was done is noted, and the next try goes on from there.
 */
export async function resizePod(
  pod: IdentifiedPod,
  plan: ResizePlan,
  port: ResizePort,
  signal: AbortSignal,
): Promise<void> {
  // Neither changes anything, so one may run beside the other; nothing is given before both are through.
  await mapAtMost(2, [port.promiseKept(signal), refuseBelowUsage(pod, plan, port, signal)], (each) => each);
  const given = new Map(plan.containers.map((resize) => [resize.container.name, resize.given]));
  const isWhole = plan.pod.changed.length > 0;
  let ofPod = plan.pod.given;
  for (const resources of passesOf(plan)) {
    const isDue = ({ changed }: Pick<ContainerResize, "changed">): boolean =>
      changed.some((resource) => resources.includes(resource));
    await port.raisePod(pod, resources, signal);
    if (isDue(plan.pod)) ofPod = withAmountsOf(ofPod, pod.spec.resources, resources);
    // Containers without limits have the pod's: of the other resource it is not their turn yet.
    const staged = isWhole ? { ...pod, spec: { ...pod.spec, resources: ofPod } } : pod;
    for (const group of givingBackFirst(plan.containers.filter(isDue), resources)) {
      await mapAtMost(aFewAtOnce, group, async ({ container, running }) => {
        const now = withAmountsOf(given.get(container.name), container.resources, resources);
        await port.update(staged, running, { ...container, resources: now }, signal);
        given.set(container.name, now);
      });
    }
    await port.lowerPod(pod, resources, signal);
    if (isDue(plan.pod)) port.notePod(uidOf(pod), ofPod);
  }
}

/**
 * Which resources change together. An update of a container takes the runtime most of the time that a resize takes, so
 * both are one update unless the order forbids it: where some give memory to others and some CPUs, one that gives the
 * one and gets the other would have to go first and last. Then memory is first, as it is what can fail.
 */
function passesOf({ containers, pod }: ResizePlan): readonly (readonly ResizableResource[])[] {
  const changed = [...resizableResources]
    .reverse()
    .filter((resource) => [pod, ...containers].some((each) => each.changed.includes(resource)));
  const isTorn = (resize: ContainerResize): boolean =>
    changed.some((resource) => givesBack(resize, resource)) && changed.some((resource) => gets(resize, resource));
  const isOneOrder = contested(containers, changed).length < 2 || !containers.some(isTorn);
  return isOneOrder ? [changed] : changed.map((resource) => [resource]);
}

function givingBackFirst(
  resizes: readonly ContainerResize[],
  resources: readonly ResizableResource[],
): readonly (readonly ContainerResize[])[] {
  const moved = contested(resizes, resources);
  const isFirst = (resize: ContainerResize): boolean => moved.some((resource) => givesBack(resize, resource));
  return [resizes.filter(isFirst), resizes.filter((resize) => !isFirst(resize))];
}

/** Resources that some containers give back and others get: there the order matters. */
function contested(
  resizes: readonly ContainerResize[],
  resources: readonly ResizableResource[],
): readonly ResizableResource[] {
  return resources.filter(
    (resource) =>
      resizes.some((resize) => givesBack(resize, resource)) && resizes.some((resize) => gets(resize, resource)),
  );
}

function givesBack({ changed, before, after }: ContainerResize, resource: ResizableResource): boolean {
  return changed.includes(resource) && isLowered(before, after, resource);
}

function gets({ changed, before, after }: ContainerResize, resource: ResizableResource): boolean {
  return changed.includes(resource) && !isLowered(before, after, resource);
}

function isLowered(before: ContainerResources, after: ContainerResources, resource: ResizableResource): boolean {
  const [had, wanted] = [amountIn(before, "limits", resource), amountIn(after, "limits", resource)];
  return wanted !== undefined && (had === undefined || wanted < had);
}

/** A limit below what is in use now would have the kernel kill processes: better to say so and wait. */
async function refuseBelowUsage(
  pod: IdentifiedPod,
  plan: ResizePlan,
  port: ResizePort,
  signal: AbortSignal,
): Promise<void> {
  const lowered = plan.containers.filter(({ before, after }) => isLowered(before, after, "memory"));
  const isPodLowered = isLowered(plan.pod.given, pod.spec.resources ?? {}, "memory");
  if (lowered.length === 0 && !isPodLowered) return;
  const problems: string[] = [];
  const podLimit = port.podMemoryLimit(pod);
  const podUsage = await port.podMemoryUsage(pod);
  if (podLimit !== undefined && podUsage >= podLimit) {
    problems.push(`attempting to set pod memory limit (${podLimit}) below current usage (${podUsage})`);
  }
  for (const { running, after } of lowered) {
    const limit = (amountIn(after, "limits", "memory") ?? 0n) / unit;
    const usage = await port.containerMemoryUsage(running, signal);
    if (usage < limit) continue;
    problems.push(
      `attempting to set container "${running.name}" memory limit (${limit}) below current usage (${usage})`,
    );
  }
  if (problems.length === 0) return;
  const all = problems.length === 1 ? problems[0] : `[${problems.join(", ")}]`;
  throw new Error(`cannot decrease memory limits: ${all}`);
}

/** Amounts are in billionths. */
const unit = 1_000_000_000n;
