import type { Logger } from "../base/index.ts";
import { describePod, type RecordNodeEvent, type RecordPodEvent } from "../model/index.ts";

/** Where events go while there is no API server to send them to: into the log. */
export function eventsToLog(log: Logger, nodeName: string): { pod: RecordPodEvent; node: RecordNodeEvent } {
  return {
    pod: (pod, { type, reason, message, fieldPath }) =>
      log.debug(1, "Event occurred", { object: describePod(pod), fieldPath: fieldPath ?? "", type, reason, message }),
    node: ({ type, reason, message }) => log.debug(1, "Event occurred", { object: nodeName, type, reason, message }),
  };
}
