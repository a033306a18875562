import { messageOf } from "../../ground/base/index.ts";
import type { ObservedPod } from "../../ground/model/index.ts";
import { nextState, type PodState } from "./pod-state.ts";
import type { WorkerPorts } from "./ports.ts";
import { publishStatus } from "./publish-status.ts";
import type { SyncOutcome, Worker } from "./worker.ts";

type Terminating = Extract<PodState, { step: "terminating" }>;

/** Stops what still runs of a pod. */
export async function syncTerminating(
  worker: Worker,
  state: Terminating,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const { uid, pod } = worker;
  const observed = await ports.observer.inspect(uid, signal);
  if (pod !== undefined) {
    ports.probes.ensure(pod);
    ports.probes.observe(pod, observed);
    await publishStatus(worker, pod, observed, "wanted", ports);
    ports.probes.beginTermination(uid);
  }
  const until = ports.clock.monotonic() + state.graceSeconds * 1000;
  worker.killDeadline = Math.min(worker.killDeadline ?? until, until);
  try {
    await ports.killer.killPod(
      { pod, observed, deadline: worker.killDeadline, preStopDone: worker.preStopDone },
      signal,
    );
  } catch (error) {
    if (signal.aborted) throw error;
    const message = `error killing pod: ${messageOf(error)}`;
    if (pod !== undefined) ports.recordEvent(pod, { type: "Warning", reason: "FailedKillPod", message });
    throw error;
  }
  const after = await ports.observer.inspect(uid, signal);
  const running = after.containers.filter(({ state: containerState }) => containerState === "running");
  if (running.length > 0) {
    const names = running.map(({ name }) => name).join(" ");
    throw new Error(`detected running containers after a successful KillPod, CRI violation: [${names}]`);
  }
  ports.probes.remove(uid);
  if (pod !== undefined) await publishStatus(worker, pod, keepIps(after, observed), "stopped", ports);
  worker.state = nextState(worker.state, { type: "containersGone" });
  for (const resolve of worker.whenStopped.splice(0)) resolve();
  return { type: "again" };
}

/** Gives back what the pod used: volumes, cgroup; and for a pod nobody wants any more its records and files. */
export async function syncTerminated(worker: Worker, ports: WorkerPorts, signal: AbortSignal): Promise<SyncOutcome> {
  const { uid, pod } = worker;
  await ports.setup.release(uid, pod, signal);
  const observed = ports.observer.latest(uid);
  if (pod !== undefined && observed !== undefined) await publishStatus(worker, pod, observed, "final", ports);
  worker.state = nextState(worker.state, { type: "released" });
  return { type: "again" };
}

function keepIps(after: ObservedPod, before: ObservedPod): ObservedPod {
  return after.ips.length > 0 ? after : { ...after, ips: before.ips };
}
