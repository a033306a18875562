import { type Clock, cutText, type Logger } from "../../../ground/base/index.ts";
import { describePod, type RecordNodeEvent, type RecordPodEvent } from "../../../ground/model/index.ts";
import { type RecentEvent, RecentEvents } from "./recent-events.ts";

/** Runtimes and registries complain at length; an event is kept by us, by the API server and by who watches it. */
const longestMessageBytes = 4 * 1024;

export interface Recorders {
  readonly pod: RecordPodEvent;
  readonly node: RecordNodeEvent;
}

/** Recorders that remember what they were told last. */
export interface NodeEvents extends Recorders {
  /** The latest last. */
  recent(): readonly RecentEvent[];
}

/** Events go into the log, and to the API server where there is one. */
export function eventsTo(
  cluster: { readonly events: Recorders } | undefined,
  { log, clock }: { readonly log: Logger; readonly clock: Clock },
  nodeName: string,
): NodeEvents {
  const kept = new RecentEvents(clock);
  return {
    recent: () => kept.all(),
    pod: (pod, said) => {
      const event = { ...said, message: cutText(said.message, longestMessageBytes) };
      const { type, reason, message, fieldPath = "" } = event;
      log.debug(1, "Event occurred", { object: describePod(pod), fieldPath, type, reason, message });
      kept.note(pod, event, nodeName);
      cluster?.events.pod(pod, event);
    },
    node: (said) => {
      const event = { ...said, message: cutText(said.message, longestMessageBytes) };
      log.debug(1, "Event occurred", { object: nodeName, ...event });
      kept.note(undefined, event, nodeName);
      cluster?.events.node(event);
    },
  };
}
