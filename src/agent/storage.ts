import { join } from "node:path";
import { runTool } from "../connections/host/index.ts";
import { getObject, isNotFound, type KubeClient, resources } from "../connections/kube/index.ts";
import { CsiDrivers, CsiNodeUpkeep, type NodeObjects, PluginRegistration } from "../connections/plugins/index.ts";
import type { Clock, Logger, TaskScope } from "../ground/base/index.ts";
import type { PersistentVolumeClaim, PersistentVolumeClaimCondition, RecordPodEvent } from "../ground/model/index.ts";
import {
  type Claims,
  type CsiCluster,
  CsiVolumes,
  type ResizeReport,
  type TokenManager,
  type VolumeFiles,
} from "../pod/volumes/index.ts";
import type { Cluster } from "./cluster.ts";

export interface StorageParts {
  readonly cluster: Cluster;
  readonly nodeName: string;
  readonly rootDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
  readonly recordEvent: RecordPodEvent;
  readonly tokens: TokenManager;
  readonly files: VolumeFiles;
  readonly syncFrequencyMs: number;
  /** Something that volumes may wait for has happened: a driver came, the cluster attached a volume. */
  readonly onNews: () => void;
  /** The volumes that the cluster must keep attached have changed. */
  readonly onInUse: () => void;
}

export interface Storage {
  readonly claims: Claims;
  readonly csi: CsiVolumes;
}

/** The cluster's storage as this node sees it: claims, and the drivers that register here. */
export function startStorage(parts: StorageParts, scope: TaskScope): Storage {
  const { cluster, nodeName, rootDir, clock, log, random, recordEvent, tokens, syncFrequencyMs, onNews } = parts;
  const client = cluster.clients.main;
  const records = new CsiNodeUpkeep(nodeObjects(client, nodeName), clock);
  const drivers = new CsiDrivers({ clock, log, records, onRegistered: onNews });
  const registration = new PluginRegistration({
    directory: join(rootDir, "plugins_registry"),
    handlers: new Map([["CSIPlugin", drivers]]),
    clock,
    log: log.named("plugins"),
  });
  scope.spawn("plugin registration", (signal) => registration.run(signal));
  let known = "";
  cluster.nodes.onChange(() => {
    const { volumesAttached = [], volumesInUse = [] } = cluster.node()?.status ?? {};
    const now = JSON.stringify([volumesAttached, volumesInUse]);
    if (now === known) return;
    known = now;
    onNews();
  });
  const csi = new CsiVolumes({
    clock,
    log,
    random,
    recordEvent,
    run: runTool,
    files: parts.files,
    drivers,
    cluster: csiCluster(cluster, nodeName),
    tokens,
    onInUse: parts.onInUse,
    nodeName,
    pluginsDir: join(rootDir, "plugins"),
    syncFrequencyMs,
  });
  return { claims: claimsOf(cluster), csi };
}

/** Read live each time: a pod must not start on what a claim used to be. */
function claimsOf(cluster: Cluster): Claims {
  const client = cluster.clients.main;
  return {
    claim: (namespace, name, signal) =>
      getObject(client, resources.persistentVolumeClaims, { namespace, name }, "latest", signal),
    persistentVolume: (name, signal) => getObject(client, resources.persistentVolumes, { name }, "latest", signal),
    node: () => {
      const { name, labels = {} } = cluster.node()?.metadata ?? {};
      return name === undefined ? undefined : { name, labels };
    },
  };
}

function csiCluster(cluster: Cluster, nodeName: string): CsiCluster {
  const client = cluster.clients.main;
  return {
    csiDriver: (name, signal) => getObject(client, resources.csiDrivers, { name }, "cached", signal),
    attachment: (name, signal) => getObject(client, resources.volumeAttachments, { name }, "latest", signal),
    isAttached: async (uniqueName, signal) => {
      // One that is attached, but not yet known to be in use here, may be on its way to another node.
      const lists = (node: ReturnType<Cluster["node"]>): boolean => {
        const { volumesAttached = [], volumesInUse = [] } = node?.status ?? {};
        return volumesInUse.includes(uniqueName) && volumesAttached.some(({ name }) => name === uniqueName);
      };
      // What we know already is asked first: it costs nothing.
      return (
        lists(cluster.node()) || lists(await getObject(client, resources.nodes, { name: nodeName }, "latest", signal))
      );
    },
    secret: (namespace, name, signal) => getObject(client, resources.secrets, { namespace, name }, "latest", signal),
    reportResize: (claim, report, signal) => reportResize(client, claim, report, signal),
    recordClaimEvent: ({ metadata = {} }, event) => {
      const { namespace, name, uid, resourceVersion } = metadata;
      const kind = "PersistentVolumeClaim";
      cluster.events.about({ apiVersion: "v1", kind, namespace, name, uid, resourceVersion }, event);
    },
  };
}

const resizeConditions = new Set(["Resizing", "FileSystemResizePending", "NodeResizeError", "ControllerResizeError"]);

async function reportResize(
  client: KubeClient,
  { metadata, status }: PersistentVolumeClaim,
  report: ResizeReport,
  signal: AbortSignal,
): Promise<void> {
  const others = (status?.conditions ?? []).filter(({ type }) => !resizeConditions.has(type));
  const ref = { namespace: metadata?.namespace, name: metadata?.name, subresource: "status" };
  const body = { status: resizeStatus(report, others) };
  await client.patch(resources.persistentVolumeClaims, ref, { type: "merge", body }, signal);
}

function resizeStatus(report: ResizeReport, others: readonly PersistentVolumeClaimCondition[]): object {
  switch (report.state) {
    case "in progress":
      return { allocatedResourceStatuses: { storage: "NodeResizeInProgress" } };
    case "done":
      return {
        capacity: { storage: report.capacity },
        allocatedResourceStatuses: { storage: null },
        conditions: others,
      };
    case "failed":
      if (report.isInfeasible) return { allocatedResourceStatuses: { storage: "NodeResizeInfeasible" } };
      return { conditions: [...others, { type: "NodeResizeError", status: "True", message: report.message }] };
  }
}

function nodeObjects(client: KubeClient, nodeName: string): NodeObjects {
  const name = nodeName;
  return {
    csiNode: (signal) => getObject(client, resources.csiNodes, { name }, "latest", signal),
    putCsiNode: async (object, signal) => {
      if (object.metadata?.resourceVersion === undefined) await client.create(resources.csiNodes, {}, object, signal);
      else await client.update(resources.csiNodes, { name }, object, signal);
    },
    node: async (signal) => {
      try {
        return await client.get(resources.nodes, { name }, {}, signal);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        throw new Error(`node "${name}" is not registered yet`, { cause: error });
      }
    },
    patchNode: async (metadata, signal) => {
      await client.patch(resources.nodes, { name }, { type: "merge", body: { metadata } }, signal);
    },
  };
}
