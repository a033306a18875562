import { cutText, type Logger } from "../../../ground/base/index.ts";
import { describePod, type RecordNodeEvent, type RecordPodEvent } from "../../../ground/model/index.ts";

/** Runtimes and registries complain at length; an event is kept by us, by the API server and by who watches it. */
const longestMessageBytes = 4 * 1024;

export interface Recorders {
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
    pod: (pod, said) => {
      const event = { ...said, message: cutText(said.message, longestMessageBytes) };
      const { type, reason, message, fieldPath = "" } = event;
      log.debug(1, "Event occurred", { object: describePod(pod), fieldPath, type, reason, message });
      cluster?.events.pod(pod, event);
    },
    node: (said) => {
      const event = { ...said, message: cutText(said.message, longestMessageBytes) };
      log.debug(1, "Event occurred", { object: nodeName, ...event });
      cluster?.events.node(event);
    },
  };
}
