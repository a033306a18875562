import type { RuntimeService } from "../connections/cri/index.ts";
import type { Clock, Logger, TaskScope } from "../ground/base/index.ts";
import type { KubeletConfiguration } from "../ground/config/index.ts";
import { parseQuantity, wholeUnits } from "../ground/model/index.ts";
import { type LoggedContainer, LogRotation, type PodObserver } from "../pod/runtime/index.ts";
import type { StatusStore } from "../pod/status/index.ts";

/** Keeps the logs of the containers that the observer knows to run within the configured limits. */
export function startLogRotation(
  parts: {
    readonly kubelet: KubeletConfiguration;
    readonly runtime: RuntimeService;
    readonly observer: PodObserver;
    readonly statuses: StatusStore;
    readonly clock: Clock;
    readonly log: Logger;
  },
  scope: TaskScope,
): void {
  const { kubelet, runtime, observer, statuses, clock, log } = parts;
  const rotation = new LogRotation(
    {
      maxBytes: Number(wholeUnits(parseQuantity(kubelet.containerLogMaxSize))),
      maxFiles: kubelet.containerLogMaxFiles,
      workers: kubelet.containerLogMaxWorkers,
      intervalMs: kubelet.containerLogMonitorIntervalMs,
    },
    { runtime, clock, log: log.named("logs"), running: () => runningContainers(observer) },
  );
  statuses.onChange(() => rotation.noteChange());
  scope.spawn("log rotation", (signal) => rotation.run(signal));
}

function* runningContainers(observer: PodObserver): Iterable<LoggedContainer> {
  for (const { containers } of observer.all()) {
    for (const container of containers) if (container.state === "running") yield container;
  }
}
