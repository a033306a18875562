import type { Logger } from "../base/index.ts";
import { describePod, type RecordNodeEvent, type RecordPodEvent } from "../model/index.ts";

interface Recorders {
  readonly pod: RecordPodEvent;
  readonly node: RecordNodeEvent;
}

/** Events go into the log, and to the API server where there is one. */
export function eventsTo(
  cluster: { readonly events: Recorders } | undefined,
  log: Logger,
  nodeName: string,
): Recorders {
  return {
    pod: (pod, event) => {
      const { type, reason, message, fieldPath = "" } = event;
      log.debug(1, "Event occurred", { object: describePod(pod), fieldPath, type, reason, message });
      cluster?.events.pod(pod, event);
    },
    node: (event) => {
      log.debug(1, "Event occurred", { object: nodeName, ...event });
      cluster?.events.node(event);
    },
  };
}
