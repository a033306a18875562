import type { DashboardPorts } from "../ports.ts";
import type { ImagesView, PodName, PullShown } from "../wire.ts";

/** Images of this node, those that come and those that could go. */
export async function imagesView(
  { images, pods }: Pick<DashboardPorts, "images" | "pods">,
  signal: AbortSignal,
): Promise<ImagesView> {
  const named = podNames(pods);
  const { goes, stays, freedBytes, wantedBytes } = await images.foresee(signal);
  const shown = [
    ...goes.map((image) => ({ ...image, goes: true, because: "" })),
    ...stays.map((image) => ({ ...image, goes: false })),
  ];
  return {
    pulls: (await images.pulls(signal)).map((pull) => pullShown(pull, named)),
    backoffs: images.backoffs().map(({ image, podUid, reason, message, failedAt, delayMs }) => ({
      image,
      pod: named(podUid),
      reason,
      message,
      nextTryAt: failedAt + delayMs,
    })),
    images: shown.map(({ id, names, sizeBytes, lastUsed, firstSeen, goes: leaves, because }) => ({
      id,
      names,
      sizeBytes: Number(sizeBytes),
      lastUsed: lastUsed === 0 ? undefined : lastUsed,
      firstSeen,
      goes: leaves,
      because,
    })),
    freedBytes: Number(freedBytes),
    wantedBytes: Number(wantedBytes),
  };
}

export function pullShown(
  { image, podUids, ageMs, progress }: Awaited<ReturnType<DashboardPorts["images"]["pulls"]>>[number],
  named: (uid: string) => PodName,
): PullShown {
  const { bytes: doneBytes, totalBytes, layers } = progress ?? {};
  return { image, pods: podUids.map(named), ageMs, doneBytes, totalBytes, layers };
}

/** What pods are called, by uid. */
export function podNames(pods: DashboardPorts["pods"]): (uid: string) => PodName {
  const names = new Map(
    pods
      .all()
      .map(({ metadata }) => [metadata?.uid ?? "", `${metadata?.namespace ?? "default"}/${metadata?.name ?? ""}`]),
  );
  return (uid) => ({ uid, name: names.get(uid) ?? uid });
}
