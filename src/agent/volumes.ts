import { join } from "node:path";
import { runTool } from "../connections/host/index.ts";
import {
  type Clock,
  isAbort,
  type Ledger,
  type Logger,
  messageOf,
  Pause,
  type TaskScope,
} from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { PodUid, RecordPodEvent } from "../ground/model/index.ts";
import type { NodeContext, ReadConfigMap, ReadSecret } from "../pod/runtime/index.ts";
import {
  LocalObjects,
  nodeKinds,
  type Objects,
  type OrphanReport,
  objectsBy,
  PodVolumes,
  type PodVolumesPorts,
  TokenManager,
  type TrustBundles,
  VolumeFiles,
} from "../pod/volumes/index.ts";
import type { Cluster } from "./cluster.ts";
import type { Storage, StorageParts } from "./storage.ts";

export interface VolumeParts {
  readonly config: AgentConfig;
  readonly podsDir: string;
  readonly node: NodeContext;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: Ledger<PodUid>;
  readonly recordEvent: RecordPodEvent;
  readonly cluster: Cluster | undefined;
  readonly onReady: (uid: PodUid) => void;
  readonly onContent: NonNullable<PodVolumesPorts["onContent"]>;
  readonly onMount: NonNullable<PodVolumesPorts["onMount"]>;
  /** The volumes that the cluster must keep attached have changed. */
  readonly onInUse: () => void;
}

export interface StartedVolumes {
  readonly volumes: PodVolumes;
  /** Undefined when there is no place that objects could come from. */
  readonly readConfigMap: ReadConfigMap | undefined;
  readonly readSecret: ReadSecret | undefined;
  /** Volumes that the cluster must keep attached to this node. */
  volumesInUse(): readonly string[];
}

/** Connects volumes with the place their content comes from: on a machine of its own, manifests beside the pods'. */
export async function startVolumes(parts: VolumeParts, scope: TaskScope): Promise<StartedVolumes> {
  const { config, node, clock, recordEvent, ledger, podsDir, onReady } = parts;
  const log = parts.log.named("volumes");
  const random = Math.random;
  const objects = startObjects(parts, scope);
  const tokens = new TokenManager({ request: parts.cluster?.requestToken, clock, log, random });
  const trustBundles = await trustBundlesIfWanted({ ...parts, log, random }, scope);
  const files = new VolumeFiles({ clock, rootDir: node.rootDir });
  const kinds = nodeKinds({
    files,
    clock,
    log,
    random,
    recordEvent,
    nodeAllocatable: () => node.nodeAllocatable,
    allocatableMemoryBytes: () => (node.nodeAllocatable.get("memory") ?? 0n) / 1_000_000_000n,
    objects,
    tokens,
    trustBundles,
    run: runTool,
    podsDir,
    pluginsDir: join(node.rootDir, "plugins"),
    withImages: config.gates.enabled("ImageVolume"),
  });
  const storage = await startStorageIfAny(
    { ...parts, log, random, tokens, files, onNews: () => volumes.retryNow() },
    scope,
  );
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
    onReady,
    onContent: parts.onContent,
    onMount: parts.onMount,
  });
  await volumes.restore();
  log.debug(1, "Volumes are ready", { strategy: config.kubelet.configMapAndSecretChangeDetectionStrategy });
  const volumesInUse = (): readonly string[] => storage?.csi.volumesInUse() ?? [];
  if (objects === undefined) return { volumes, volumesInUse, readConfigMap: undefined, readSecret: undefined };
  return {
    volumes,
    volumesInUse,
    readConfigMap: (namespace, name, signal) => objects.read({ kind: "configmap", namespace, name }, signal),
    readSecret: (namespace, name, signal) => objects.read({ kind: "secret", namespace, name }, signal),
  };
}

async function startStorageIfAny(
  parts: VolumeParts & Pick<StorageParts, "random" | "tokens" | "files" | "onNews">,
  scope: TaskScope,
): Promise<Storage | undefined> {
  const { cluster, config, node } = parts;
  if (cluster === undefined) return undefined;
  const { startStorage } = await import("./storage.ts");
  const { syncFrequencyMs } = config.kubelet;
  return startStorage({ ...parts, cluster, nodeName: config.nodeName, rootDir: node.rootDir, syncFrequencyMs }, scope);
}

async function trustBundlesIfWanted(
  { cluster, config, clock, log, random }: VolumeParts & Pick<StorageParts, "random">,
  scope: TaskScope,
): Promise<TrustBundles | undefined> {
  if (cluster === undefined || !config.gates.enabled("ClusterTrustBundleProjection")) return undefined;
  const { trustBundlesOf } = await import("./trust-bundles.ts");
  return trustBundlesOf({ client: cluster.clients.main, clock, log, random }, scope);
}

function startObjects({ config, clock, log, cluster }: VolumeParts, scope: TaskScope): Objects | undefined {
  const { staticPodPath, fileCheckFrequencyMs, syncFrequencyMs, configMapAndSecretChangeDetectionStrategy } =
    config.kubelet;
  const strategy = configMapAndSecretChangeDetectionStrategy;
  if (cluster !== undefined) return objectsBy(strategy, cluster.objects, { clock, syncFrequencyMs });
  if (staticPodPath === "") return undefined;
  const source = new LocalObjects({
    directory: staticPodPath,
    clock,
    log: log.named("objects"),
    checkEveryMs: fileCheckFrequencyMs,
  });
  scope.spawn("local config maps and secrets", (signal) => source.run(signal));
  return objectsBy(strategy, source, { clock, syncFrequencyMs });
}

const orphanCheckMs = 2 * 60_000;
const notReadyMs = 2_000;

/** Removes directories of pods that an earlier run could not finish with, once every source has said what it wants. */
export function keepCleaningOrphans(
  ports: {
    readonly volumes: PodVolumes;
    readonly clock: Clock;
    readonly log: Logger;
    /** Undefined while not every pod is known. */
    readonly knownPods: (signal: AbortSignal) => Promise<ReadonlySet<PodUid> | undefined>;
    readonly onSweep: (report: OrphanReport) => void;
  },
  scope: TaskScope,
): void {
  const { volumes, clock, log, knownPods } = ports;
  const pause = new Pause(clock);
  scope.spawn("orphaned pod directories", async (signal) => {
    while (!signal.aborted) {
      let wasDone = false;
      try {
        const known = await knownPods(signal);
        if (known !== undefined) {
          const report = await volumes.cleanOrphans(known, signal);
          const { removed, problems } = report;
          ports.onSweep(report);
          for (const uid of removed) log.info("Removed the directory of a pod that is gone", { uid });
          for (const { uid, message } of problems) log.warn(message, { uid });
          wasDone = true;
        }
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        log.warn("Could not look for directories of pods that are gone", { reason: messageOf(error) });
      }
      await pause.wait(wasDone ? orphanCheckMs : notReadyMs, signal);
    }
  });
}
