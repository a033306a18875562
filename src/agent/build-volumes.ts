import { join } from "node:path";
import type { PluginHandler } from "../connections/plugins/index.ts";
import type { Logger, TaskScope } from "../ground/base/index.ts";
import type { RecordPodEvent } from "../ground/model/index.ts";
import type { NodeContext, ReadConfigMap, ReadSecret } from "../pod/runtime/index.ts";
import {
  LocalObjects,
  MountLabels,
  type NodeVolumePorts,
  type ObjectSource,
  type Objects,
  objectsBy,
  PodVolumes,
  TokenManager,
  TrustBundleInformer,
  VolumeFiles,
} from "../pod/volumes/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { Storage } from "./build-storage.ts";
import type { ClusterParts } from "./cluster-parts.ts";
import type { Foundation } from "./foundation.ts";

export interface VolumeParts {
  readonly volumes: PodVolumes;
  /** Undefined when there is no place that objects could come from. */
  readonly readConfigMap: ReadConfigMap | undefined;
  readonly readSecret: ReadSecret | undefined;
  /** Volumes that the cluster must keep attached to this node. */
  volumesInUse(): readonly string[];
  /** Who takes storage drivers that register; undefined without an API server. */
  readonly csiDrivers: PluginHandler | undefined;
  /** Storage drivers that have registered. */
  csiDriverNames(): readonly string[];
  start(scope: TaskScope): Promise<void>;
}

/** A cluster, and the code that only its members need. */
export interface Membership {
  readonly cluster: Cluster;
  readonly code: ClusterParts;
}

/** Connects volumes with the place their content comes from: on a machine of its own, manifests beside the pods'. */
export function buildVolumes(
  base: Foundation,
  parts: {
    readonly context: NodeContext;
    readonly recordEvent: RecordPodEvent;
    readonly membership: Membership | undefined;
  },
): VolumeParts {
  const { config, clock, ledger, podsDir, rootDir, random, scope, wakes, metrics } = base;
  const { context, recordEvent, membership } = parts;
  const log = base.log.named("volumes");
  const { objects, source, local } = buildObjects(base, membership?.cluster);
  const tokens = new TokenManager({ request: membership?.cluster.requestToken, clock, log, random });
  const files = new VolumeFiles({ clock, rootDir: context.rootDir });
  const labels = mountLabels(base);
  const storage = membership?.code.buildStorage(base, {
    cluster: membership.cluster,
    recordEvent,
    tokens,
    files,
    labels,
  });
  const trustBundles = trustBundlesIfWanted(base, membership?.cluster, log);
  const kinds = base.host.volumeKinds({
    files,
    clock,
    log,
    random,
    recordEvent,
    nodeAllocatable: () => context.nodeAllocatable,
    allocatableMemoryBytes: () => (context.nodeAllocatable.get("memory") ?? 0n) / 1_000_000_000n,
    objects,
    tokens,
    trustBundles,
    run: base.host.runTool,
    podsDir,
    pluginsDir: join(rootDir, "plugins"),
    withImages: config.gates.enabled("ImageVolume"),
    ...attachingOf(base, storage, source),
    labels,
  });
  const volumes = new PodVolumes(scope, {
    clock,
    log,
    ledger,
    recordEvent,
    random,
    podsDir,
    files,
    kinds: storage === undefined ? kinds : [...kinds, storage.csi],
    objects,
    trustBundles,
    claims: storage?.claims,
    onReady: wakes.pod.tell,
    onContent: metrics.volumes.onContent,
    onMount: metrics.volumes.onMount,
  });
  wakes.volumes.on(() => volumes.retryNow());
  metrics.volumes.show(volumes);
  return {
    volumes,
    volumesInUse: () => storage?.volumesInUse() ?? [],
    csiDrivers: storage?.drivers,
    csiDriverNames: () => storage?.drivers.names() ?? [],
    ...readersOf(objects),
    async start(running) {
      if (local !== undefined) running.spawn("local config maps and secrets", (signal) => local.run(signal));
      await volumes.restore();
      for (const kind of kinds) {
        const run = kind.run?.bind(kind);
        if (run !== undefined) running.spawn(`volumes ${kind.plugin}`, run);
      }
      log.debug(1, "Volumes are ready", { strategy: config.kubelet.configMapAndSecretChangeDetectionStrategy });
    },
  };
}

/** What kinds need whose volumes come to the node from elsewhere. */
function attachingOf(
  { config, wakes }: Foundation,
  storage: Storage | undefined,
  source: ObjectSource | undefined,
): Pick<
  NodeVolumePorts,
  "nodeName" | "volumePluginDir" | "inUse" | "secret" | "growth" | "syncFrequencyMs" | "onDrivers"
> {
  const { volumePluginDir, enableControllerAttachDetach, syncFrequencyMs } = config.kubelet;
  return {
    nodeName: config.nodeName,
    volumePluginDir,
    inUse: enableControllerAttachDetach ? storage?.inUse : undefined,
    secret: source && ((namespace, name, signal) => source.get({ kind: "secret", namespace, name }, "latest", signal)),
    growth: storage?.growth,
    syncFrequencyMs,
    onDrivers: wakes.volumes.tell,
  };
}

/** Undefined where SELinux is off. */
function mountLabels({ config, host }: Foundation): MountLabels | undefined {
  const { selinuxEnabled, containerFileLabel } = host.facts;
  if (!selinuxEnabled) return undefined;
  const { gates } = config;
  return new MountLabels(containerFileLabel, {
    ofOnePod: gates.enabled("SELinuxMountReadWriteOncePod"),
    ofMany: gates.enabled("SELinuxMount"),
    byChoice: gates.enabled("SELinuxChangePolicy"),
  });
}

/** Where config maps and secrets come from; `local` has to be run. */
function buildObjects(
  { config, clock, log }: Foundation,
  cluster: Cluster | undefined,
): { readonly objects: Objects | undefined; readonly source?: ObjectSource; readonly local?: LocalObjects } {
  const { staticPodPath, fileCheckFrequencyMs, syncFrequencyMs, configMapAndSecretChangeDetectionStrategy } =
    config.kubelet;
  const strategy = configMapAndSecretChangeDetectionStrategy;
  if (cluster !== undefined) {
    const source = cluster.objects;
    return { objects: objectsBy(strategy, source, { clock, syncFrequencyMs }), source };
  }
  if (staticPodPath === "") return { objects: undefined };
  const local = new LocalObjects({
    directory: staticPodPath,
    clock,
    log: log.named("objects"),
    checkEveryMs: fileCheckFrequencyMs,
  });
  return { objects: objectsBy(strategy, local, { clock, syncFrequencyMs }), source: local, local };
}

function readersOf(objects: Objects | undefined): Pick<VolumeParts, "readConfigMap" | "readSecret"> {
  if (objects === undefined) return { readConfigMap: undefined, readSecret: undefined };
  return {
    readConfigMap: (namespace, name, signal) => objects.read({ kind: "configmap", namespace, name }, signal),
    readSecret: (namespace, name, signal) => objects.read({ kind: "secret", namespace, name }, signal),
  };
}

function trustBundlesIfWanted(
  { config, clock, random, scope }: Foundation,
  cluster: Cluster | undefined,
  log: Logger,
): TrustBundleInformer | undefined {
  if (cluster === undefined || !config.gates.enabled("ClusterTrustBundleProjection")) return undefined;
  return new TrustBundleInformer({ client: cluster.clients.main, clock, log, random }, scope);
}
