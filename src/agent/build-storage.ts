import { join } from "node:path";
import { CsiDrivers } from "../connections/plugins/index.ts";
import { whenDifferent } from "../ground/base/index.ts";
import type { RecordPodEvent } from "../ground/model/index.ts";
import {
  attachmentsOf,
  type Claims,
  CsiVolumes,
  claimsOf,
  csiClusterOf,
  type GrowthReports,
  type MountLabels,
  type TokenManager,
  type VolumeFiles,
  VolumesInUse,
} from "../pod/volumes/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { Foundation } from "./foundation.ts";

export interface Storage {
  readonly claims: Claims;
  readonly csi: CsiVolumes;
  /** Who takes the drivers that register. */
  readonly drivers: CsiDrivers;
  /** Volumes of other kinds that the cluster attaches. */
  readonly inUse: VolumesInUse;
  readonly growth: GrowthReports;
  /** For the node's status: what is attached, or has to be. */
  volumesInUse(): readonly string[];
}

/** The cluster's storage as this node sees it: claims, and the drivers that register here. */
export function buildStorage(
  base: Foundation,
  parts: {
    readonly cluster: Cluster;
    readonly recordEvent: RecordPodEvent;
    readonly tokens: TokenManager;
    readonly files: VolumeFiles;
    readonly labels: MountLabels | undefined;
  },
): Storage {
  const { config, rootDir, clock, random, wakes, host } = base;
  const { cluster, recordEvent, tokens, files, labels } = parts;
  const { nodeName } = config;
  const log = base.log.named("volumes");
  const client = cluster.clients.main;
  const drivers = new CsiDrivers({
    clock,
    log,
    records: cluster.csiNode,
    onRegistered: () => wakes.volumes.tell(),
  });
  const ofCluster = { client, nodeName, node: () => cluster.own.node, recordEvent: cluster.events.about };
  const ofStorage = csiClusterOf(ofCluster);
  const inUse = new VolumesInUse({ onInUse: wakes.node.tell, attachedAt: ofStorage.attachedAt });
  const csi = new CsiVolumes({
    clock,
    log,
    random,
    recordEvent,
    run: host.runTool,
    files,
    drivers,
    cluster: ofStorage,
    labels,
    tokens,
    onInUse: wakes.node.tell,
    nodeName,
    pluginsDir: join(rootDir, "plugins"),
    syncFrequencyMs: config.kubelet.syncFrequencyMs,
  });
  cluster.own.onNode(whenDifferent(() => attachmentsOf(cluster.own.node), wakes.volumes.tell));
  return {
    claims: claimsOf(ofCluster),
    csi,
    drivers,
    inUse,
    growth: ofStorage,
    volumesInUse: () => [...csi.volumesInUse(), ...inUse.list()].sort(),
  };
}
