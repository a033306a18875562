import { Informer, resources, withoutManagedFields } from "../connections/kube/index.ts";
import { type Clock, type Logger, type TaskScope, withDeadline } from "../ground/base/index.ts";
import type { V1beta1ClusterTrustBundle } from "../ground/model/index.ts";
import type { TrustBundles } from "../pod/volumes/index.ts";

interface TrustBundleParts {
  readonly client: ConstructorParameters<typeof Informer>[1]["client"];
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
}

const bundlesKnownMs = 10_000;

/** The cluster's trust bundles, followed from the first pod that asks for them. */
export function trustBundlesOf({ client, clock, log, random }: TrustBundleParts, scope: TaskScope): TrustBundles {
  const listeners = new Set<() => void>();
  let informer: Informer<V1beta1ClusterTrustBundle> | undefined;
  const started = (): Informer<V1beta1ClusterTrustBundle> => {
    if (informer !== undefined) return informer;
    const ports = { client, clock, log, random };
    const bundles: Informer<V1beta1ClusterTrustBundle> = new Informer(
      { resource: resources.clusterTrustBundles, keep: withoutManagedFields },
      ports,
    );
    bundles.onChange(() => {
      for (const listener of listeners) listener();
    });
    scope.spawn("follow clustertrustbundles", (signal) => bundles.run(signal));
    informer = bundles;
    return bundles;
  };
  return {
    async list(signal) {
      const bundles = started();
      if (!bundles.hasSynced) await syncedWithin(bundles, clock, signal);
      return bundles.list();
    },
    onChange: (listener) => void listeners.add(listener),
  };
}

async function syncedWithin(
  bundles: Pick<Informer<V1beta1ClusterTrustBundle>, "synced">,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const late = (): Error => new Error("ClusterTrustBundle informer has not yet synced");
  await withDeadline(clock, bundlesKnownMs, late, signal, (bounded) => bundles.synced(bounded));
}
