import {
  amountIn,
  type ContainerResources,
  type IdentifiedPod,
  type ResizableResource,
  resizableResources,
} from "../../ground/model/index.ts";
import type { ContainerResize } from "./plan-resize.ts";
import type { ResizePort } from "./ports.ts";

/**
 * Gives running containers what they were promised. The pod's own limit must never be below what its containers may
 * use: it is raised before them and lowered after them, and among containers those go first that give something back.
 * The first failure ends it; what was done is noted, and the next try goes on from there.
 */
export async function resizeContainers(
  pod: IdentifiedPod,
  resizes: readonly ContainerResize[],
  port: ResizePort,
  signal: AbortSignal,
): Promise<void> {
  await port.promiseKept();
  const ofMemory = resizes.filter(({ changed }) => changed.includes("memory"));
  if (ofMemory.length > 0) await refuseBelowUsage(pod, ofMemory, port, signal);
  const given = new Map(resizes.map((resize) => [resize.container.name, resize.given]));
  // Memory first: it is what can fail.
  for (const resource of [...resizableResources].reverse()) {
    const due = resizes.filter(({ changed }) => changed.includes(resource));
    if (due.length === 0) continue;
    await port.raisePod(pod, resource);
    for (const resize of givingBackFirst(due, resource)) {
      const { name, resources } = resize.container;
      const now = mixed(given.get(name), resources, resource);
      await port.update(pod, resize.running, { ...resize.container, resources: now }, signal);
      given.set(name, now);
    }
    await port.lowerPod(pod, resource);
  }
}

function givingBackFirst(resizes: readonly ContainerResize[], resource: ResizableResource): readonly ContainerResize[] {
  const givesBack = ({ container, given }: ContainerResize): boolean => {
    const wanted = amountIn(container.resources, "limits", resource);
    const had = amountIn(given, "limits", resource);
    return wanted !== undefined && (had === undefined || wanted < had);
  };
  return [...resizes.filter(givesBack), ...resizes.filter((resize) => !givesBack(resize))];
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
  resizes: readonly ContainerResize[],
  port: ResizePort,
  signal: AbortSignal,
): Promise<void> {
  const lowered = resizes.flatMap(({ container, running, given }) => {
    const wanted = amountIn(container.resources, "limits", "memory");
    const had = amountIn(given, "limits", "memory");
    return wanted !== undefined && (had === undefined || wanted < had) ? [{ running, limit: wanted / unit }] : [];
  });
  if (lowered.length === 0) return;
  const problems: string[] = [];
  const podLimit = port.podMemoryLimit(pod);
  const podUsage = await port.podMemoryUsage(pod);
  if (podLimit !== undefined && podUsage >= podLimit) {
    problems.push(`attempting to set pod memory limit (${podLimit}) below current usage (${podUsage})`);
  }
  for (const { running, limit } of lowered) {
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
