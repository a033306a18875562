import { isAbort } from "../../ground/base/index.ts";
import type { IdentifiedPod, ObservedPod } from "../../ground/model/index.ts";
import type { PodWorker } from "./pod-worker.ts";
import type { WorkerPorts } from "./ports.ts";
import { publishStatus } from "./publish-status.ts";

/** How soon users see what has become of the containers that are up while others are still being started. */
const progressMs = 2_000;

/** Shows how far the pod has come for as long as the work takes: a slow image must not hide what already runs. */
export async function whileReporting<Result>(
  worker: PodWorker,
  pod: IdentifiedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const { clock } = ports;
  let report = Promise.resolve();
  let isDone = false;
  const soon = (): { cancel(): void } =>
    clock.after(progressMs, () => {
      report = (async () => {
        if (worker.stale) await reportProgress(worker, pod, ports, signal);
        if (!isDone) timer = soon();
      })();
    });
  let timer = soon();
  try {
    return await work();
  } finally {
    isDone = true;
    timer.cancel();
    await report;
  }
}

async function reportProgress(
  worker: PodWorker,
  pod: IdentifiedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<void> {
  try {
    await publishStatus(worker, pod, await observe(worker, pod, ports, signal), "starting", ports);
  } catch (error) {
    if (isAbort(error, signal)) return;
    ports.log.debug(2, "Could not look how far a pod has come", { pod: pod.metadata.name, err: error });
  }
}

/** The pod as it is now: as last seen, unless something has happened since. */
export async function observe(
  worker: PodWorker,
  pod: IdentifiedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<ObservedPod> {
  let observed = ports.observer.latest(worker.uid);
  if (worker.stale || observed === undefined) {
    // Cleared first: whatever happens while we look calls for another look.
    worker.stale = false;
    try {
      observed = await ports.observer.inspect(worker.uid, signal);
    } catch (error) {
      worker.stale = true;
      throw error;
    }
  }
  ports.probes.ensure(pod);
  ports.probes.observe(pod, observed);
  return observed;
}
