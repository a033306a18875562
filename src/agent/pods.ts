import { join } from "node:path";
import { ContainerHints, type CriClient } from "../connections/cri/index.ts";
import { type CgroupLayout, isAppArmorEnabled, type Machine } from "../connections/host/index.ts";
import { type Clock, Ledger, type Logger, type TaskScope } from "../ground/base/index.ts";
import type { AgentConfig } from "../ground/config/index.ts";
import type { IdentifiedPod, PodUid } from "../ground/model/index.ts";
import type { KnownNode, NodeKeeper } from "../node/object/index.ts";
import type { HealthRegistry, LocalViews, Reviews, RuntimeViews, StatsPorts } from "../node/server/index.ts";
import { type ImageGc, readPullSecrets } from "../pod/images/index.ts";
import {
  Admission,
  appArmorHandler,
  groupsPolicyHandler,
  hostPortsHandler,
  type JudgingNode,
  nodeFitHandler,
  osHandler,
  sysctlHandler,
} from "../pod/registry/index.ts";
import {
  defaultUserIdPool,
  type KnownServices,
  normalSysctlName,
  type RuntimeStatus,
  UserIds,
} from "../pod/runtime/index.ts";
import { startCgroups } from "./cgroups.ts";
import type { Cluster } from "./cluster.ts";
import { certDirOf } from "./directories.ts";
import { eventsTo } from "./event-log.ts";
import { startImageCollection } from "./garbage.ts";
import { watchApi, watchDisk, watchEventLoop } from "./health-checks.ts";
import { hostNamespaceHandler } from "./host-namespaces.ts";
import { mountedImageNames } from "./image-volumes.ts";
import { type ProcessSurroundings, startImages } from "./images.ts";
import { startLogRotation } from "./log-rotation.ts";
import { type AgentMetrics, showClientCertificate, showServingCertificate } from "./metrics/index.ts";
import { hostDnsReader, readNodeContext } from "./node-context.ts";
import { machineIps, NodeIps } from "./node-ips.ts";
import { NodeResources } from "./node-resources.ts";
import { type PodEngine, startPodEngine } from "./pod-engine.ts";
import { pullAccounts } from "./pull-accounts.ts";
import type { ConnectedRuntime } from "./runtime-link.ts";
import { startSources } from "./sources.ts";
import { statisticsOf } from "./statistics.ts";
import { keepCleaningOrphans, startVolumes } from "./volumes.ts";

/** Everything the pods' side of the agent is built from. */
export interface AgentParts {
  readonly config: AgentConfig;
  /** --root-dir in canonical form. */
  readonly rootDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly health: HealthRegistry;
  readonly metrics: AgentMetrics;
  readonly cri: CriClient;
  readonly runtime: ConnectedRuntime;
  readonly machine: Machine;
  readonly cgroups: CgroupLayout;
  readonly surroundings: ProcessSurroundings;
}

/** The pods' side as the doors see it. Its loops live in the scope it was started with. */
export interface RunningPods {
  readonly views: LocalViews;
  /** Every source has said which pods it wants. */
  sourcesReady(): boolean;
}

/** What the doors need besides. */
export interface StartedPods extends RunningPods {
  readonly runtimeViews: RuntimeViews;
  readonly statistics: StatsPorts;
  /** undefined: there is no cluster whose API server could be asked. */
  readonly reviews: Reviews | undefined;
}

const legacyLogDir = "/var/log/containers";

/** Parts that others call back before they are there; until then there is nothing to tell them. */
interface LateParts {
  engine?: PodEngine;
  keeper?: NodeKeeper;
  imageGc?: ImageGc;
  healing?: { readonly wake: () => void };
}

/** Connects sources, workers and what they drive, and starts them; leaving the scope stops loops, never pods. */
export async function startPods(parts: AgentParts, scope: TaskScope): Promise<StartedPods> {
  const { config, clock, log, cri, machine, metrics } = parts;
  const { kubelet, flags } = config;
  const podsDir = join(parts.rootDir, "pods");
  const cluster = await joinClusterIfAny(parts, scope);
  const known = cluster && (await import("./known-node.ts")).followNode({ ...parts, cluster }, scope);
  const events = eventsTo(cluster, log.named("events"), config.nodeName);
  const userIds = new UserIds(podsDir, defaultUserIdPool(kubelet.userNamespaces?.idsPerPod));
  for (const problem of await userIds.restore()) {
    log.error("No new pod can have a user namespace of its own until another pod is gone", new Error(problem));
  }
  const resources = await NodeResources.read(config, machine, parts.rootDir);
  resources.besides(() => known?.knowledge?.node.status);
  const nodeIps = new NodeIps({ clock, log: log.named("node"), find: machineIps(flags.nodeIPs) });
  known?.onChange(() => nodeIps.learn(known.knowledge));
  nodeIps.learn(known?.knowledge);
  await nodeIps.start(scope);
  const node = await readNodeContext({
    config,
    machine,
    cgroups: parts.cgroups,
    cgroupDriver: parts.runtime.cgroupDriver,
    nodeIps: () => nodeIps.current,
    allocatable: () => resources.allocatable(),
    allocateIds: (pod) => userIds.allocate(pod),
    log,
  });
  const ledger = new Ledger<PodUid>(clock, undefined, metrics.pods.onStep);
  const late: LateParts = {};
  const mux = await startSources({ ...parts, recordEvent: events.pod, hasApi: cluster !== undefined }, scope);
  const runtimeHandlerOf = (pod: IdentifiedPod): string => runtimeHandler(pod, cluster);
  const images = await startImages(
    {
      config,
      images: cri.images,
      runtime: parts.runtime.identity,
      clock,
      log: log.named("images"),
      ledger,
      recordEvent: events.pod,
      surroundings: parts.surroundings,
      onUse: (imageId) => late.imageGc?.noteWanted(imageId),
      metrics: metrics.images,
      runtimeHandlerOf,
      serviceAccounts:
        cluster &&
        pullAccounts({
          client: cluster.clients.main,
          requestToken: cluster.requestToken,
          clock,
          log: log.named("images"),
        }),
      pullSecrets: (pod, signal) =>
        readPullSecrets(pod, {
          recordEvent: events.pod,
          getSecret: async (namespace, name) => {
            const ref = { kind: "secret", namespace, name } as const;
            return cluster?.objects.get(ref, "cached", signal).catch(() => undefined);
          },
        }),
    },
    scope.signal,
  );
  late.imageGc = await startImageCollection(
    {
      config,
      runtime: cri.runtime,
      images: cri.images,
      clock,
      log: log.named("images"),
      recordNodeEvent: events.node,
      onRemoved: metrics.images.onRemoved,
      onCollected: images.onCollected,
      mountedImages: () => mountedImageNames(mux.pods()),
    },
    scope,
  );
  const cgroups = await startCgroups(
    {
      config,
      node,
      layout: parts.cgroups,
      machine,
      clock,
      log,
      environment: parts.surroundings.environment,
      activePods: () => late.engine?.activePods() ?? [],
      arePodsKnown: () => late.engine?.arePodsKnown() ?? false,
    },
    scope,
  );
  const volumes = await startVolumes(
    {
      config,
      podsDir,
      node,
      clock,
      log,
      ledger,
      recordEvent: events.pod,
      cluster,
      onReady: (uid) => late.engine?.workers.wake(uid),
      onInUse: () => late.keeper?.wake(),
      onContent: metrics.volumes.onContent,
      onMount: metrics.volumes.onMount,
    },
    scope,
  );
  const engine = startPodEngine(
    {
      clock,
      log,
      ledger,
      runtime: cri.runtime,
      runtimeName: parts.runtime.identity.name,
      hints: new ContainerHints({
        runtime: cri.runtime,
        containerdEvents: (request, namespace, signal) => cri.containerdEvents(request, namespace, signal),
        clock,
        log: log.named("hints"),
      }),
      mux,
      admission: new Admission([
        hostNamespaceHandler(parts.surroundings.environment),
        sysctlHandler({
          allowedUnsafe: kubelet.allowedUnsafeSysctls,
          kernelVersion: machine.kernelVersion,
          normalName: normalSysctlName,
        }),
        ...(cluster === undefined
          ? []
          : [
              nodeFitHandler({
                node: () => judgingNode(known),
                allocatable: () => resources.allocatable(),
              }),
            ]),
        hostPortsHandler,
        appArmorHandler(await isAppArmorEnabled()),
        osHandler,
        groupsPolicyHandler(() => supportsStrictGroups(late.engine?.runtimeStatus)),
      ]),
      node,
      hostIPs: () => nodeIps.current,
      readHostDns: hostDnsReader(kubelet.resolvConf),
      legacyLogDir,
      cgroups: cgroups.pods,
      ...volumes,
      runtimeHandlerOf,
      services: () => knownServices(cluster),
      images,
      metrics,
      recordPodEvent: events.pod,
      recordNodeEvent: events.node,
      onRuntimeChange: () => late.keeper?.wake(),
      onPodsKnown: () => late.healing?.wake(),
      onGone(uid) {
        userIds.release(uid);
        images.forgetPod(uid);
      },
      settings: {
        crashBackoff: crashBackoff(config),
        // More at once would only make each of them slower: starting is work of the machine's cores.
        startSlots: Math.max(2, machine.cpus.logical * 2),
        runtimeRequestTimeoutMs: kubelet.runtimeRequestTimeoutMs,
        minimumContainerAgeMs: flags.minimumContainerTTLDurationMs,
        maxDeadPerContainer: flags.maximumDeadContainersPerContainer,
        maxDeadContainers: flags.maximumDeadContainers,
      },
    },
    scope,
  );
  late.engine = engine;
  known?.onChange(() => engine.reconsider());
  nodeIps.onChange(() => engine.workers.wakeAll());
  late.healing = cgroups.keepHealing((signal) => engine.knownPods(signal), scope);
  if (engine.arePodsKnown()) late.healing.wake();
  metrics.volumes.show(volumes.volumes);
  startLogRotation({ ...engine, kubelet, runtime: cri.runtime, clock, log }, scope);
  let reviews: Reviews | undefined;
  if (cluster !== undefined && known !== undefined) {
    const [{ startApiSource, reportToApi }, { startNode }, { kubeReviews }] = await Promise.all([
      import("./cluster-pods.ts"),
      import("./node.ts"),
      import("./kube-reviews.ts"),
    ]);
    reviews = metrics.kube.reviews(kubeReviews(cluster.clients.main), clock);
    const { clientCertificate } = cluster;
    if (clientCertificate !== undefined) showClientCertificate(metrics.figures.main, clientCertificate);
    const { statuses, workers, runtimeStatus } = engine;
    const { rootDir, runtime } = parts;
    const nodeParts = { cluster, config, resources, cri, identity: runtime.identity, runtimeStatus, clock, log };
    metrics.startup.begin();
    const keeper = startNode({ ...nodeParts, recordNodeEvent: events.node, volumesInUse: volumes.volumesInUse }, scope);
    late.keeper = keeper;
    keeper.onNode(metrics.startup.onNode);
    const { nodeName } = config;
    startApiSource({ cluster, known, nodeName, rootDir, runtime: cri.runtime, clock, log }, mux, scope);
    if (kubelet.serverTLSBootstrap) {
      const { startServingCertificate } = await import("./serving-certificate.ts");
      const certDir = certDirOf(config, rootDir);
      const serving = { cluster, node: keeper, config, certDir, clock, log: log.named("kube") };
      showServingCertificate(metrics.figures.main, await startServingCertificate(serving, scope));
    }
    const wanted = (): readonly IdentifiedPod[] => mux.pods();
    const onSynced = metrics.pods.onStatusSynced;
    reportToApi({ cluster, node: keeper, clock, log, statuses, workers, wanted, onSynced }, scope);
  }
  if (kubelet.localStorageCapacityIsolation) {
    const { startStorageWatch } = await import("./eviction.ts");
    const { observer, workers } = engine;
    const { rootDir } = parts;
    const seen = { cri, rootDir, podLogsDir: node.podLogsDir, volumes: volumes.volumes, observer, workers };
    const isStandalone = cluster === undefined;
    const recordEvent = events.pod;
    startStorageWatch({ ...seen, isStandalone, clock, log, recordEvent, onEvicted: metrics.pods.onEvicted }, scope);
  }
  keepCleaningOrphans(
    {
      volumes: volumes.volumes,
      clock,
      log: log.named("volumes"),
      knownPods: (signal) => engine.knownPods(signal),
      onSweep: metrics.volumes.onSweep,
    },
    scope,
  );
  watchEventLoop(parts, scope);
  watchDisk(parts.rootDir, parts, scope);
  if (cluster !== undefined) {
    const leaseSeconds = kubelet.nodeLeaseDurationSeconds;
    watchApi({ ...parts, pods: cluster.pods, lease: () => late.keeper?.lease.renewal, leaseSeconds });
  }
  parts.health.watch("pods", () => {
    const problem = engine.runtimeStatus.runtimeProblem;
    return problem === undefined ? { state: "ok" } : { state: "waiting", reason: problem };
  });
  return {
    views: engine.views,
    runtimeViews: engine.observer,
    statistics: statisticsOf(parts, { node, observer: engine.observer, volumes: volumes.volumes }),
    reviews,
    sourcesReady: () => mux.allReady(),
  };
}

/** Most machines of one person never load the client for a cluster. */
async function joinClusterIfAny(parts: AgentParts, scope: TaskScope): Promise<Cluster | undefined> {
  const { config, clock, log, surroundings, metrics } = parts;
  if (config.flags.kubeconfig === "") return undefined;
  const { joinCluster } = await import("./cluster.ts");
  const certDir = certDirOf(config, parts.rootDir);
  const watchRequests = (host: string) => metrics.kube.watch(host);
  return joinCluster({ config, certDir, clock, log, environment: surroundings.environment, watchRequests }, scope);
}

function judgingNode(known: KnownNode | undefined): JudgingNode | undefined {
  const knowledge = known?.knowledge;
  return knowledge && { node: knowledge.node, isConfirmed: knowledge.from === "api" };
}

function knownServices(cluster: Cluster | undefined): KnownServices {
  if (cluster === undefined) return { state: "none" };
  return cluster.services.hasSynced ? { state: "read", services: cluster.services.list() } : { state: "unread" };
}

function runtimeHandler(pod: IdentifiedPod, cluster: Cluster | undefined): string {
  const { runtimeClassName } = pod.spec;
  if (runtimeClassName === undefined || runtimeClassName === "") return "";
  // Without an API server there are no classes, so the name is taken for the handler's.
  if (cluster === undefined) return runtimeClassName;
  const found = cluster.runtimeClasses.get(undefined, runtimeClassName);
  if (found === undefined) throw new Error(`RuntimeClass "${runtimeClassName}" not found`);
  return found.handler;
}

function supportsStrictGroups(status: RuntimeStatus | undefined): boolean | undefined {
  return status?.answeredAt === undefined ? undefined : status.features?.supplementalGroupsPolicy === true;
}

function crashBackoff({ gates, kubelet }: AgentConfig): { readonly initialMs: number; readonly maxMs: number } {
  const reduced = gates.enabled("ReduceDefaultCrashLoopBackOffDecay");
  const defaults = reduced ? { initialMs: 1_000, maxMs: 60_000 } : { initialMs: 10_000, maxMs: 300_000 };
  const maxMs = kubelet.crashLoopBackOff.maxContainerRestartPeriodMs ?? defaults.maxMs;
  return { initialMs: Math.min(defaults.initialMs, maxMs), maxMs };
}
