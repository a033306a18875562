import type { Recorders } from "../connections/kube/index.ts";
import type { IdentifiedPod } from "../ground/model/index.ts";
import {
  ConfiguredImageGc,
  imageAccessOf,
  PodImages,
  pullAccounts,
  readPullSecrets,
  recoverAccess,
} from "../pod/images/index.ts";
import type { PodMux } from "../pod/sources/index.ts";
import { TokenManager } from "../pod/volumes/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { Foundation } from "./foundation.ts";

export interface ImageParts {
  readonly images: PodImages;
  readonly collection: ConfiguredImageGc;
  start(): Promise<void>;
}

/** Images come when a container needs them, and go when nothing does. */
export function buildImages(
  base: Foundation,
  parts: {
    readonly cluster: Cluster | undefined;
    readonly events: Recorders;
    readonly mux: PodMux;
    readonly runtimeHandlerOf: (pod: IdentifiedPod) => string;
  },
): ImageParts {
  const { config, cri, clock, metrics, scope, random } = base;
  const { cluster, events, mux, runtimeHandlerOf } = parts;
  const log = base.log.named("images");
  const access = imageAccessOf(config, { clock, log });
  const collection = new ConfiguredImageGc(config, {
    runtime: cri.runtime,
    images: cri.images,
    clock,
    log,
    recordNodeEvent: events.node,
    onRemoved: metrics.images.onRemoved,
    onCollected: async (imageIds, before) => access?.prune(imageIds, before),
    wantedPods: () => mux.pods(),
  });
  const images = new PodImages(config, {
    images: cri.images,
    content: cri.imageContent,
    runtime: () => base.link.runtime.identity,
    clock,
    log,
    ledger: base.ledger,
    recordEvent: events.pod,
    ownProcess: base.process,
    onUse: collection.noteWanted,
    metrics: metrics.images,
    runtimeHandlerOf,
    access,
    serviceAccounts:
      cluster &&
      pullAccounts({
        client: cluster.clients.main,
        tokens: new TokenManager({ request: cluster.requestToken, clock, log, random }),
      }),
    pullSecrets: (pod, signal) =>
      readPullSecrets(pod, {
        recordEvent: events.pod,
        getSecret: async (namespace, name) => {
          const ref = { kind: "secret", namespace, name } as const;
          return cluster?.objects.get(ref, "cached", signal).catch(() => undefined);
        },
      }),
  });
  base.wakes.gone.on((uid) => images.forgetPod(uid));
  return {
    images,
    collection,
    async start() {
      await recoverAccess(access, { images: cri.images, clock, log }, scope.signal);
      await images.load();
      await collection.start(scope);
    },
  };
}
