import type { RuntimeService } from "../../connections/cri/index.ts";
import { aFewAtOnce, mapAtMost } from "../../ground/base/index.ts";
import type { PodUid } from "../../ground/model/index.ts";
import type { ContainerRemoval } from "./container-removal.ts";
import { removePodLogs } from "./log-cleanup.ts";
import type { PodObserver } from "./observer.ts";

/** Removes everything the runtime has of a pod: containers with their logs, then sandboxes. */
export function podRemoval(ports: {
  readonly runtime: Pick<RuntimeService, "removePodSandbox">;
  readonly observer: Pick<PodObserver, "inspect">;
  readonly removal: ContainerRemoval;
  readonly podLogsDir: string;
}): (uid: PodUid, signal: AbortSignal) => Promise<void> {
  const { runtime, observer, removal, podLogsDir } = ports;
  return async (uid, signal) => {
    const { containers, sandboxes } = await observer.inspect(uid, signal);
    await mapAtMost(aFewAtOnce, containers, (container) => removal.remove(container, signal));
    await mapAtMost(aFewAtOnce, sandboxes, ({ id }) => runtime.removePodSandbox({ podSandboxId: id }, { signal }));
    await removePodLogs(podLogsDir, (owner) => owner === uid, signal);
  };
}
