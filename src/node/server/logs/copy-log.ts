import type { RuntimeService } from "../../../connections/cri/index.ts";
import { type Clock, isAbort } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { AnswerError } from "../api/answer-error.ts";
import { containerNames, type NamedPod } from "../api/pod-lookup.ts";
import type { LocalViews, RuntimeViews } from "../ports.ts";
import { logInstance, mayStillWrite } from "./log-instance.ts";
import type { LogOptions } from "./log-options.ts";
import { type ContainerLife, type LogSink, readLog } from "./read-log.ts";

export interface LogSourcePorts {
  readonly views: Pick<LocalViews, "pods" | "watchPods">;
  readonly runtimeViews: Pick<RuntimeViews, "latest">;
  readonly runtime: Pick<RuntimeService, "containerStatus">;
  readonly clock: Clock;
}

/** Writes to the sink what a container has written, and on request what it goes on to write. */
export async function copyLog(
  {
    named,
    container,
    options,
  }: { readonly named: Pick<NamedPod, "pod" | "uid">; readonly container: string; readonly options: LogOptions },
  sink: LogSink,
  ports: LogSourcePorts,
  signal: AbortSignal,
): Promise<void> {
  // The name goes no further unless it is one of the spec's: it must never become part of a path.
  if (!containerNames(named.pod).includes(container)) {
    const podName = named.pod.metadata?.name ?? "";
    const where = `${JSON.stringify(container)} not found in pod ${JSON.stringify(podName)}`;
    throw new AnswerError(404, `container ${where}`);
  }
  const id = logInstance(named.pod, container, options.previous);
  const path = await logPathOf(named.uid, id, ports, signal);
  const follow = options.follow ? lifeOf(named, container, id, ports) : undefined;
  await readLog({ ...options, path, follow }, sink, ports.clock, signal);
}

/** What the runtime says of the instance; asked only when the agent does not know it already. */
async function logPathOf(uid: PodUid, id: string, ports: LogSourcePorts, signal: AbortSignal): Promise<string> {
  const containerId = id.replace(/^[^:]*:\/\//, "");
  const known = ports.runtimeViews.latest(uid)?.containers.find((container) => container.id === containerId)?.logPath;
  if (known !== undefined && known !== "") return known;
  try {
    const { status } = await ports.runtime.containerStatus({ containerId, verbose: false }, { signal });
    if (status !== undefined && status.logPath !== "") return status.logPath;
  } catch (error) {
    if (isAbort(error, signal)) throw error;
  }
  throw new AnswerError(400, `unable to retrieve container logs for ${id}`);
}

function lifeOf(
  { uid }: Pick<NamedPod, "uid">,
  container: string,
  id: string,
  { views }: LogSourcePorts,
): ContainerLife {
  const podOf = () => views.pods().find(({ metadata }) => metadata?.uid === uid);
  return {
    hasEnded: () => !mayStillWrite(podOf(), container, id),
    onChange: (listener) =>
      views.watchPods(({ object }) => {
        if (object.metadata?.uid === uid) listener();
      }),
  };
}
