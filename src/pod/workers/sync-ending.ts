import { messageOf, type Timer } from "../../ground/base/index.ts";
import type { IdentifiedPod, ObservedPod } from "../../ground/model/index.ts";
import { killDeadlineOf, type Terminating } from "./pod-state.ts";
import { move, type PodWorker, type SyncOutcome, type Worker } from "./pod-worker.ts";
import type { KillerPort, WorkerPorts } from "./ports.ts";
import { keepDecision, publishEnd, publishStatus } from "./publish-status.ts";

/** A pod that eats 100 MiB a second has not eaten much more by then. */
const longestKeepMs = 250;

/** Stops what still runs of a pod. */
export async function syncTerminating(
  worker: Worker,
  state: Terminating,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const { uid } = worker;
  const known = worker.type === "pod" ? { worker, pod: worker.pod } : undefined;
  const observed = await ports.observer.inspect(uid, signal);
  if (known !== undefined && state.decision !== undefined) await keptSoon(known.worker, ports);
  // The disk that keeps the status, which may be slow, is no reason to let anything run on.
  const isTold = known === undefined ? undefined : tellOfEnding(known.worker, known.pod, observed, ports);
  // Somebody may have asked for less grace meanwhile.
  const present = worker.state.step === "terminating" ? worker.state : state;
  const now = ports.clock.monotonic();
  move(worker, { type: "stopping", now });
  const why = `its pod ends: ${present.cause}`;
  const deadline = killDeadlineOf(present, now);
  try {
    await kill(worker, { pod: known?.pod, observed, deadline, atOnce: present.graceSeconds === 0, why }, ports, signal);
  } finally {
    await isTold;
  }
  worker.stale = false;
  const after = await ports.observer.inspect(uid, signal);
  const running = after.containers.filter((container) => container.state === "running");
  if (running.length > 0) {
    const names = running.map(({ name }) => name).join(" ");
    throw new Error(`detected running containers after a successful KillPod, CRI violation: [${names}]`);
  }
  ports.probes.remove(uid);
  if (known !== undefined) {
    await publishEnd(known.worker, known.pod, keepIps(after, observed), "stopped", ports);
  }
  move(worker, { type: "containersGone" });
  return { type: "again" };
}

/** Keeps the node's decision before anything is killed, unless the disk takes too long: the node may be in need. */
async function keptSoon(worker: PodWorker, ports: WorkerPorts): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<void>((resolve) => {
    timer = ports.clock.after(longestKeepMs, resolve);
  });
  await Promise.race([keepDecision(worker, ports), late]);
  timer?.cancel();
}

/** A pod that says odd things of itself may make this impossible; it is ended all the same. */
async function tellOfEnding(
  worker: PodWorker,
  pod: IdentifiedPod,
  observed: ObservedPod,
  ports: WorkerPorts,
): Promise<void> {
  try {
    ports.probes.ensure(pod);
    ports.probes.observe(pod, observed);
    await publishStatus(worker, pod, observed, "wanted", ports);
  } catch (error) {
    const { name, namespace } = pod.metadata;
    ports.log.error("Could not report that a pod is ending; ending it anyway", error, { pod: name, namespace });
  }
  ports.probes.beginTermination(worker.uid);
}

async function kill(
  { preStopDone }: Worker,
  request: Omit<Parameters<KillerPort["killPod"]>[0], "preStopDone">,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<void> {
  try {
    await ports.churn.stopping(() => ports.killer.killPod({ ...request, preStopDone }, signal));
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `error killing pod: ${messageOf(error)}`;
    if (request.pod !== undefined) {
      ports.recordEvent(request.pod, { type: "Warning", reason: "FailedKillPod", message });
    }
    throw error;
  }
}

/** Gives back what the pod used: volumes, cgroup; and for a pod nobody wants any more its records and files. */
export async function syncTerminated(worker: Worker, ports: WorkerPorts, signal: AbortSignal): Promise<SyncOutcome> {
  const { uid } = worker;
  const known = worker.type === "pod" ? { worker, pod: worker.pod } : undefined;
  await ports.setup.release(uid, known?.pod, signal);
  const observed = ports.observer.latest(uid);
  if (known !== undefined && observed !== undefined) {
    await publishEnd(known.worker, known.pod, observed, "final", ports);
  }
  move(worker, { type: "released" });
  return { type: "again" };
}

function keepIps(after: ObservedPod, before: ObservedPod): ObservedPod {
  return after.ips.length > 0 ? after : { ...after, ips: before.ips };
}
