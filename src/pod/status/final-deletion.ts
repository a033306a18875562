import { type KubeClient, resources } from "../../connections/kube/index.ts";
import { type IdentifiedPod, isMirrorPod, isTerminalPhase } from "../../ground/model/index.ts";

/**
 * Whether the pod may leave the API: somebody deletes it, the API knows how it ended, and nothing of it runs. `step`:
 * how far its worker is, if it has one.
 */
export function mayDeleteFinally(pod: IdentifiedPod, step: string | undefined): boolean {
  const isDone = step === undefined || step === "finished";
  return (
    pod.metadata.deletionTimestamp !== undefined && !isMirrorPod(pod) && isTerminalPhase(pod.status?.phase) && isDone
  );
}

/** At once and only this very pod. */
export async function deleteApiPod(
  client: Pick<KubeClient, "delete">,
  pod: IdentifiedPod,
  signal: AbortSignal,
): Promise<void> {
  const { namespace, name, uid } = pod.metadata;
  const options = { gracePeriodSeconds: 0, preconditions: { uid } };
  await client.delete(resources.pods, { namespace, name }, options, signal);
}
