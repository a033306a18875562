import {
  amountIn,
  type ContainerResources,
  type IdentifiedPod,
  type ResizableResource,
  resizableResources,
  uidOf,
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
  await port.promiseKept(signal);
  await refuseBelowUsage(pod, plan, port, signal);
  const given = new Map(plan.containers.map((resize) => [resize.container.name, resize.given]));
  const isWhole = plan.pod.changed.length > 0;
  let ofPod = plan.pod.given;
  // Memory first: it is what can fail.
  for (const resource of [...resizableResources].reverse()) {
    const due = plan.containers.filter(({ changed }) => changed.includes(resource));
    const isPodDue = plan.pod.changed.includes(resource);
    if (due.length === 0 && !isPodDue) continue;
    await port.raisePod(pod, resource);
    if (isPodDue) ofPod = mixed(ofPod, pod.spec.resources, resource);
    // Containers without limits have the pod's: of the other resource it is not their turn yet.
    const staged = isWhole ? { ...pod, spec: { ...pod.spec, resources: ofPod } } : pod;
    for (const resize of givingBackFirst(due, resource)) {
      const { name, resources } = resize.container;
      const now = mixed(given.get(name), resources, resource);
      await port.update(staged, resize.running, { ...resize.container, resources: now }, signal);
      given.set(name, now);
    }
    await port.lowerPod(pod, resource);
    if (isPodDue) port.notePod(uidOf(pod), ofPod);
  }
}

function givingBackFirst(resizes: readonly ContainerResize[], resource: ResizableResource): readonly ContainerResize[] {
  const givesBack = ({ before, after }: ContainerResize): boolean => isLowered(before, after, resource);
  return [...resizes.filter(givesBack), ...resizes.filter((resize) => !givesBack(resize))];
}

function isLowered(before: ContainerResources, after: ContainerResources, resource: ResizableResource): boolean {
  const [had, wanted] = [amountIn(before, "limits", resource), amountIn(after, "limits", resource)];
  return wanted !== undefined && (had === undefined || wanted < had);
}

/** The resources before, with the new values of one of them. */
function mixed(
  before: ContainerResources | undefined,
  after: ContainerResources | undefined,
  resource: ResizableResource,
): ContainerResources {
  const list = (key: "requests" | "limits") => {
    const { [resource]: _, ...others } = before?.[key] ?? {};
    const value = after?.[key]?.[resource];
    return value === undefined ? others : { ...others, [resource]: value };
  };
  return { ...before, requests: list("requests"), limits: list("limits") };
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
