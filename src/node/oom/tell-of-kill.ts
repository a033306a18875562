import { isAbort, type Logger, messageOf } from "../../ground/base/index.ts";
import {
  containerNamed,
  fieldPathOf,
  type IdentifiedPod,
  type ObservedContainer,
  type ObservedPod,
  type PodUid,
  type RecordPodEvent,
} from "../../ground/model/index.ts";
import type { OomKill } from "./kernel-oom.ts";

export interface TellOfKillPorts {
  readonly log: Logger;
  /** Whose container that is, as far as it was ever seen. */
  readonly ownerOf: (containerId: string) => PodUid | undefined;
  /** Whose cgroup that is, or is below of. */
  readonly podOfCgroup: (path: string) => PodUid | undefined;
  readonly latest: (uid: PodUid) => ObservedPod | undefined;
  /** Asks the runtime. */
  readonly inspect: (uid: PodUid, signal: AbortSignal) => Promise<ObservedPod>;
  readonly podOf: (uid: PodUid) => IdentifiedPod | undefined;
  readonly recordEvent: RecordPodEvent;
  /** How a container of this pod ended was taken to be something else. */
  readonly doubt: (uid: PodUid) => void;
}

/**
 * Tells users of a pod that the kernel killed a process of it; and where its container was taken to have ended for
 * another reason, that is put right. A container may be killed before anybody has seen it run.
 */
export async function tellOfKill(
  id: string,
  kill: OomKill | undefined,
  ports: TellOfKillPorts,
  signal: AbortSignal,
): Promise<void> {
  const uid = ports.ownerOf(id) ?? (kill && ports.podOfCgroup(kill.cgroup));
  if (uid === undefined) return;
  const container = containerIn(ports.latest(uid), id) ?? (await inspected(uid, id, ports, signal));
  const pod = ports.podOf(uid);
  if (pod !== undefined) {
    const who = kill === undefined ? "A process" : `Process ${kill.process} (pid ${kill.pid})`;
    const where = container === undefined ? "" : ` of container ${container.name}`;
    const message = `${who}${where} was killed because memory ran out`;
    const kind = (container && containerNamed(pod, container.name)?.kind) ?? "regular";
    const place = container === undefined ? {} : { fieldPath: fieldPathOf(kind, container.name) };
    ports.recordEvent(pod, { type: "Warning", reason: "OOMKilling", message, ...place });
  }
  if (container?.state === "exited") ports.doubt(uid);
}

async function inspected(
  uid: PodUid,
  id: string,
  { inspect, log }: TellOfKillPorts,
  signal: AbortSignal,
): Promise<ObservedContainer | undefined> {
  try {
    return containerIn(await inspect(uid, signal), id);
  } catch (error) {
    if (isAbort(error, signal)) throw error;
    log.debug(2, "Could not find out which container it was", { container: id, reason: messageOf(error) });
    return undefined;
  }
}

function containerIn(observed: ObservedPod | undefined, id: string): ObservedContainer | undefined {
  return observed?.containers.find((container) => container.id === id);
}
