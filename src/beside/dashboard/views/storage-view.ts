import { mapAtMost } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { podResources } from "../../../ground/model/index.ts";
import type { DashboardPorts } from "../ports.ts";
import type { StorageView } from "../wire.ts";
import { podNames } from "./images-view.ts";
import { wholeOf } from "./pod-row.ts";
import { volumeViews } from "./volume-view.ts";

const measuredAtOnce = 8;

type StoragePorts = Pick<DashboardPorts, "pods" | "storage" | "clock">;

/** What pods have mounted, and what they take of the node's disk. */
export async function storageView(ports: StoragePorts, signal: AbortSignal): Promise<StorageView> {
  const { pods, storage } = ports;
  const named = podNames(pods);
  const all = pods.all();
  const mounted = all.filter(({ metadata }) => pods.volumes((metadata?.uid ?? "") as PodUid).length > 0);
  // Some at once: a hundred volumes of a server that is gone are to keep nobody waiting for the rest.
  const volumes = await mapAtMost(measuredAtOnce, mounted, async (pod) =>
    (await volumeViews(pod, ports, signal)).map((volume) => ({ ...volume, pod: named(pod.metadata?.uid ?? "") })),
  );
  const limits = new Map(
    all.map(({ metadata, spec }) => {
      const limit =
        spec === undefined ? undefined : podResources(spec, "without overhead").limits.get("ephemeral-storage");
      return [metadata?.uid ?? "", wholeOf(limit)];
    }),
  );
  const local = await storage.localUse(signal).catch(() => []);
  return {
    volumes: volumes.flat(),
    drivers: storage.drivers(),
    leftovers: await storage.leftovers(signal).catch(() => []),
    local: local.map(({ uid, usedBytes, inodes }) => ({
      pod: named(uid),
      usedBytes,
      limitBytes: limits.get(uid),
      inodes,
    })),
  };
}
