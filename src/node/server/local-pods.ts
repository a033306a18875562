import type { RuntimeService } from "../../connections/cri/index.ts";
import type { Clock, Logger } from "../../ground/base/index.ts";
import { Dispatcher } from "./api/dispatch.ts";
import { openGate } from "./api/gate.ts";
import { containerLogsService } from "./logs/container-logs.ts";
import type { LocalViews, RuntimeViews } from "./ports.ts";
import type { LazyStatistics } from "./stats/lazy-statistics.ts";
import { statsService } from "./stats/stats-service.ts";
import { streamServices } from "./streaming/stream-service.ts";

export interface LocalPodPorts {
  readonly views: LocalViews;
  readonly runtimeViews: RuntimeViews;
  readonly runtime: RuntimeService;
  readonly statistics: Pick<LazyStatistics, "get">;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Logs, exec and figures on the local socket, as the node's API gives them to clients with credentials. Here the mode of
 * the socket is the gate: whoever may open it is root.
 */
export function localPods(ports: LocalPodPorts): Dispatcher {
  const { clock, log } = ports;
  return new Dispatcher({
    mounts: [
      containerLogsService({ ...ports, splitStreams: true }),
      ...streamServices(ports),
      statsService(() => ports.statistics.get()),
    ],
    gate: openGate,
    clock,
    log,
    onRequest: () => () => {},
  });
}
