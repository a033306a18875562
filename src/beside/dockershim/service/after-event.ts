import type { ContainerEventResponse, ContainerStatus } from "../../../connections/cri/index.ts";
import { messageOf, withDeadline } from "../../../ground/base/index.ts";
import { type EngineEvent, type InspectedContainer, isAbsent } from "../engine/index.ts";
import { eventSandbox } from "../mapping/event-sandbox.ts";
import { isPart } from "../mapping/labels.ts";
import type { DockerContainers } from "./containers.ts";
import { logPathsOf, type ShimContext } from "./context.ts";
import type { DockerSandboxes } from "./sandboxes.ts";

/** Whoever hears of an end and looks must see it: Docker tells of it a moment before its lists know. */
export async function afterEvent(
  context: ShimContext,
  containers: Pick<DockerContainers, "changed" | "statusAtEnd">,
  sandboxes: Pick<DockerSandboxes, "look">,
  event: EngineEvent,
  signal: AbortSignal,
): Promise<Omit<ContainerEventResponse, "containerEventType" | "createdAt">> {
  containers.changed(event.id);
  if (event.action === "start") await afterStart(context, sandboxes, event, signal);
  const status = event.action === "die" ? await statusAtEnd(context, containers, event, signal) : undefined;
  return {
    containerId: event.id,
    podSandboxStatus: eventSandbox(event.id, event.attributes),
    containersStatuses: status === undefined ? [] : [status],
  };
}

/** Whoever started it: what asked for it may have left before it was, and somebody may do so by hand. */
async function afterStart(
  context: ShimContext,
  sandboxes: Pick<DockerSandboxes, "look">,
  { id, attributes }: EngineEvent,
  signal: AbortSignal,
): Promise<void> {
  const started = { id, name: attributes["name"] ?? "", labels: attributes };
  if (isPart(started, "podsandbox"))
    return await unlessTrouble(context, id, signal, (bounded) => sandboxes.look(id, bounded));
  const paths = logPathsOf(started, await context.facts.info(signal));
  if (paths !== undefined) context.copies.ensure(id, paths);
}

async function statusAtEnd(
  context: ShimContext,
  containers: Pick<DockerContainers, "statusAtEnd">,
  { id }: EngineEvent,
  signal: AbortSignal,
): Promise<ContainerStatus | undefined> {
  const look = async (bounded: AbortSignal): Promise<InspectedContainer> =>
    await context.engine.inspectContainer(id, bounded);
  // By the time Docker tells of an end, all that was said is in its log.
  const [found] = await Promise.all([unlessTrouble(context, id, signal, look), context.copies.finish(id, signal)]);
  if (found === undefined || !isPart(found, "container")) return undefined;
  return await unlessTrouble(context, id, signal, (bounded) => containers.statusAtEnd(found, bounded));
}

const tellsWithinMs = 10_000;

/** Undefined where Docker does not tell: one container's trouble must not keep the events of the others. */
async function unlessTrouble<Result>(
  { clock, log }: Pick<ShimContext, "clock" | "log">,
  id: string,
  signal: AbortSignal,
  ask: (signal: AbortSignal) => Promise<Result>,
): Promise<Result | undefined> {
  const late = (): Error => new Error(`docker did not tell within ${tellsWithinMs / 1000} s`);
  try {
    return await withDeadline(clock, tellsWithinMs, late, signal, ask);
  } catch (error) {
    signal.throwIfAborted();
    if (!isAbsent(error)) log.warn("cannot look at what an event tells of", { id, error: messageOf(error) });
    return undefined;
  }
}
