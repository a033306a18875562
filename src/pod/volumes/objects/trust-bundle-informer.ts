import { Informer, type ListWatchPorts, resources, withoutManagedFields } from "../../../connections/kube/index.ts";
import { type TaskScope, Topic, withDeadline } from "../../../ground/base/index.ts";
import type { V1beta1ClusterTrustBundle } from "../../../ground/model/index.ts";
import type { TrustBundles } from "./trust-bundles.ts";

const bundlesKnownMs = 10_000;

/** The cluster's trust bundles, followed from the first pod that asks for them. */
export class TrustBundleInformer implements TrustBundles {
  readonly #ports: ListWatchPorts;
  readonly #scope: TaskScope;
  readonly #informer: Informer<V1beta1ClusterTrustBundle>;
  readonly #changed = new Topic();
  #isFollowed = false;

  constructor(ports: ListWatchPorts, scope: TaskScope) {
    this.#ports = ports;
    this.#scope = scope;
    this.#informer = new Informer({ resource: resources.clusterTrustBundles, keep: withoutManagedFields }, ports);
    this.#informer.onChange(() => this.#changed.tell());
  }

  async list(signal: AbortSignal): Promise<readonly V1beta1ClusterTrustBundle[]> {
    if (!this.#isFollowed) {
      this.#isFollowed = true;
      this.#scope.spawn("follow clustertrustbundles", (running) => this.#informer.run(running));
    }
    if (!this.#informer.hasSynced) {
      const late = (): Error => new Error("ClusterTrustBundle informer has not yet synced");
      const { clock } = this.#ports;
      await withDeadline(clock, bundlesKnownMs, late, signal, (bounded) => this.#informer.synced(bounded));
    }
    return this.#informer.list();
  }

  onChange(listener: () => void): void {
    this.#changed.on(listener);
  }
}
