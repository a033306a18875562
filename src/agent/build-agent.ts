import { RuntimeEvents } from "../connections/cri/index.ts";
import { type CertificateState, eventsTo, type NodeEvents } from "../connections/kube/index.ts";
import type { PluginRegistration } from "../connections/plugins/index.ts";
import { NODELET_VERSION } from "../ground/config/index.ts";
import { type PodUid, uidOf } from "../ground/model/index.ts";
import { showRollout } from "../node/metrics/index.ts";
import type { NodeFacts, NodeKeeper } from "../node/object/index.ts";
import type { OomWatch } from "../node/oom/index.ts";
import { LazyStatistics, type NodeApiPorts, noReviews } from "../node/server/index.ts";
import { ShutdownProgress } from "../node/shutdown/index.ts";
import type { ResizeSettings } from "../pod/registry/index.ts";
import type { NodeCgroups } from "../pod/resources/index.ts";
import { knownServices, runtimeHandlers, swapBytes } from "../pod/runtime/index.ts";
import { crashBackoffOf } from "../pod/workers/index.ts";
import { Agent } from "./agent.ts";
import { type AdmissionTrial, admissionOnTrial, buildAdmission, type JudgingParts } from "./build-admission.ts";
import { buildCgroups } from "./build-cgroups.ts";
import { buildClaims, type ClaimParts } from "./build-claims.ts";
import { buildCloud } from "./build-cloud.ts";
import type { Cluster } from "./build-cluster.ts";
import { buildDashboard } from "./build-dashboard.ts";
import { buildDevices, type DeviceParts } from "./build-devices.ts";
import { buildDryRuns } from "./build-dry-runs.ts";
import { buildEviction, type EvictionWatches } from "./build-eviction.ts";
import { buildImages, type ImageParts } from "./build-images.ts";
import { buildManifestPlan } from "./build-manifest-plan.ts";
import { buildNodeParts, type NodeParts } from "./build-node-parts.ts";
import { buildOomWatch, followOom } from "./build-oom.ts";
import { buildPlacement, type PlacementParts } from "./build-placement.ts";
import { buildPluginRegistration } from "./build-plugins.ts";
import { buildPodEngine, type PodEngine } from "./build-pod-engine.ts";
import { buildPodSight, type PodSight } from "./build-pod-sight.ts";
import { buildSelfViews } from "./build-self-views.ts";
import { buildShutdown, type ShutdownParts } from "./build-shutdown.ts";
import { buildSources, type ManifestSources } from "./build-sources.ts";
import { buildStatistics } from "./build-statistics.ts";
import { buildUpkeep, type Upkeep } from "./build-upkeep.ts";
import { buildVolumes, type VolumeParts } from "./build-volumes.ts";
import { type Foundation, layFoundation } from "./foundation.ts";
import type { AgentInputs, ClusterInputs } from "./inputs.ts";
import type { PodEngineParts } from "./pod-engine-parts.ts";

/** Every part of the agent. Each exists when the next is built from it; none has begun to work. */
export interface AgentParts {
  readonly base: Foundation;
  readonly events: NodeEvents;
  readonly cluster: Cluster | undefined;
  readonly devices: DeviceParts;
  /** Undefined: there are no resource claims on this node. */
  readonly claims: ClaimParts | undefined;
  readonly registration: PluginRegistration;
  readonly node: NodeParts;
  readonly sources: ManifestSources;
  readonly sight: PodSight;
  readonly images: ImageParts;
  readonly placed: PlacementParts;
  readonly cgroups: NodeCgroups;
  readonly volumes: VolumeParts;
  readonly engine: PodEngine;
  /** Admission that gives nothing away, for those who ask what it would say. */
  readonly onTrial: () => AdmissionTrial;
  readonly memory: ReturnType<typeof followOom>;
  readonly member: Member | undefined;
  readonly shutdown: ShutdownParts;
  readonly eviction: EvictionWatches;
  readonly upkeep: Upkeep;
}

/** What the agent does as a member of a cluster. */
export interface Member {
  readonly keeper: NodeKeeper;
  /** The API server has the pod's present status, or has nothing to show it by. */
  isReported(uid: PodUid): boolean;
  /** Undefined: the API server does not sign it. */
  servingCertificate(): CertificateState | undefined;
  start(): Promise<void>;
}

/** Makes the whole agent without starting anything: no loop, no file, no process, no connection. */
export function buildAgent(inputs: AgentInputs): Agent {
  const base = layFoundation(inputs);
  const { config } = base;
  const cluster = inputs.cluster && joinable(base, inputs.cluster);
  const events = eventsTo(cluster, { log: base.log.named("events"), clock: base.clock }, config.nodeName);
  const devices = buildDevices(base);
  const node = buildNodeParts(base, { known: cluster?.known, devices });
  const sources = buildSources(base, { recordEvent: events.pod, hasApi: cluster !== undefined });
  const oom = buildOomWatch(base, events);
  const { sight, runtimeEvents } = buildSight(base, sources, oom);
  const runtimeHandlerOf = runtimeHandlers(cluster?.runtimeClasses);
  const images = buildImages(base, { cluster, events, mux: sources.mux, runtimeHandlerOf });
  const placed = buildPlacement(base, { context: node.context, sight, devices });
  const cgroups = buildCgroups(base, node.context, { sight, events, ...placed });
  const membership = cluster && inputs.cluster && { cluster, code: inputs.cluster.parts };
  const volumes = buildVolumes(base, { context: node.context, recordEvent: events.pod, membership });
  const claims = buildClaims(base, { membership, holds: (uid) => sight.holds(uid) });
  cluster?.known.onChange(base.wakes.decisions.tell);
  const progress = shutdownProgress(base);
  const isShuttingDown = (): boolean => progress.isUnderWay;
  const judging: JudgingParts = { known: cluster?.known, ...node, ...placed, devices, sight, isShuttingDown };
  const engine = buildPodEngine({
    ...base,
    ...volumes,
    ...placed,
    sight,
    runtimeEvents,
    onOom: () => oom.hasten(),
    context: node.context,
    runtime: base.cri.runtime,
    runtimeName: () => base.link.runtime.identity.name,
    admission: buildAdmission(base, judging),
    ...deviceUse(base, devices, claims),
    hostIPs: () => node.ips.current,
    readHostDns: node.readHostDns,
    legacyLogDir: base.host.containerLogsDir,
    cgroups,
    runtimeHandlerOf,
    services: knownServices(cluster?.services),
    images: images.images,
    recordPodEvent: events.pod,
    recordNodeEvent: events.node,
    onPodsKnown: () => {
      cgroups.wake();
      placed.cpusets.soon();
      devices.manager.retain((uid) => sight.holds(uid));
      claims?.podsKnown();
    },
    settings: engineSettings(base),
    resizeSettings: resizeSettings(base, node),
  });
  const memory = followOom(base, { oom, sight, events, context: node.context });
  const handlers = { CSIPlugin: volumes.csiDrivers, DevicePlugin: devices.plugins, DRAPlugin: claims?.drivers };
  const registration = buildPluginRegistration(base, handlers);
  const known = { base, events, cluster, node, sources, sight, images };
  const onTrial = () => admissionOnTrial(base, judging);
  const built = { ...known, devices, claims, registration, placed, cgroups, volumes, engine, onTrial, memory };
  const nodeConfig = inputs.rollout?.nodeReport;
  const member = inputs.cluster && cluster && buildMember(inputs.cluster, cluster, { ...built, progress, nodeConfig });
  const { context } = node;
  const kept = { context, sight, events, cluster, workers: engine.workers, volumes: volumes.volumes };
  const shutdown = buildShutdown(base, { ...kept, progress, isReported: member?.isReported });
  const eviction = buildEviction(base, { ...kept, pressure: node.pressure, images: images.collection, gc: engine.gc });
  const upkeep = buildUpkeep(base, { ...kept, eviction, keeper: member?.keeper });
  if (inputs.rollout !== undefined) showRollout(base.metrics.figures.main, inputs.rollout.shown);
  const parts: AgentParts = { ...built, member, shutdown, eviction, upkeep };
  return new Agent(parts, listenerPorts(parts, inputs), inputs);
}

/** Whoever acts on whether the machine is being turned off is woken when that changes. */
function shutdownProgress({ wakes }: Foundation): ShutdownProgress {
  const progress = new ShutdownProgress();
  progress.changed.on(() => {
    wakes.node.tell();
    wakes.decisions.tell();
  });
  return progress;
}

function joinable(base: Foundation, { parts, connect }: ClusterInputs): Cluster {
  const { config, rootDir, clock, random, log, metrics, process, tracer } = base;
  const watchRequests = (host: string) => metrics.kube.watch(host);
  const { environment } = process;
  const ports = { config, rootDir, clock, random, log, environment, watchRequests, tracer };
  return parts.buildCluster(base, connect(ports));
}

function buildSight(base: Foundation, { mux }: ManifestSources, oom: OomWatch) {
  const { cri, clock, log, metrics, wakes, rootDir } = base;
  const runtimeEvents = new RuntimeEvents({
    runtime: cri.runtime,
    containerdEvents: (request, namespace, signal) => cri.containerdEvents(request, namespace, signal),
    clock,
    log: log.named("runtime-events"),
  });
  const wasOomKilled = (id: string): boolean => oom.wasKilled(id);
  const sight = buildPodSight({
    clock,
    log,
    runtime: cri.runtime,
    runtimeEvents,
    mux,
    metrics,
    wakes,
    rootDir,
    wasOomKilled,
  });
  return { runtimeEvents, sight };
}

/** What pods have of devices, be they from plugins or from claims. */
function deviceUse(
  { config }: Foundation,
  { manager }: DeviceParts,
  claims: ClaimParts | undefined,
): Pick<PodEngineParts, "claims" | "deviceHealth" | "devicesFor"> {
  const showsHealth = config.gates.enabled("ResourceHealthStatus");
  return {
    claims: claims?.manager,
    deviceHealth: showsHealth
      ? (pod, name) => [...manager.healthOf(uidOf(pod), name), ...(claims?.healthOf(pod, name) ?? [])]
      : undefined,
    async devicesFor(pod, container, signal) {
      const ofClaims = claims?.manager.cdiDevicesFor(pod, container) ?? [];
      const grants = await manager.grantsFor(pod, container, signal);
      return ofClaims.length === 0 ? grants : { ...grants, cdiDevices: [...ofClaims, ...grants.cdiDevices] };
    },
  };
}

function engineSettings({ config }: Foundation) {
  const { kubelet, flags } = config;
  return {
    crashBackoff: crashBackoffOf(config),
    runtimeRequestTimeoutMs: kubelet.runtimeRequestTimeoutMs,
    minimumContainerAgeMs: flags.minimumContainerTTLDurationMs,
    maxDeadPerContainer: flags.maximumDeadContainersPerContainer,
    maxDeadContainers: flags.maximumDeadContainers,
  };
}

function resizeSettings({ config }: Foundation, { context, resources }: NodeParts): ResizeSettings {
  const { gates, kubelet } = config;
  return {
    isEnabled: gates.enabled("InPlacePodVerticalScaling"),
    ofPods: gates.enabled("InPlacePodLevelResourcesVerticalScaling"),
    ofInitContainers: gates.enabled("InPlacePodVerticalScalingInitContainers"),
    pinsCpus: kubelet.cpuManagerPolicy === "static" && !gates.enabled("InPlacePodVerticalScalingExclusiveCPUs"),
    pinsMemory: kubelet.memoryManagerPolicy === "Static" && !gates.enabled("InPlacePodVerticalScalingExclusiveMemory"),
    mayUseSwap: (pod, container) => swapBytes(pod, container, context) > 0n,
    allocatable: () => resources.allocatable(),
  };
}

function buildMember(
  { parts: code, network }: ClusterInputs,
  cluster: Cluster,
  {
    base,
    events,
    node,
    devices,
    sight,
    volumes,
    engine,
    progress,
    nodeConfig,
  }: Omit<AgentParts, "member" | "shutdown" | "eviction" | "upkeep"> & {
    readonly progress: ShutdownProgress;
    readonly nodeConfig: NodeFacts["config"];
  },
): Member {
  const { resources } = node;
  const { runtimeStatus } = sight;
  const { volumesInUse } = volumes;
  const recordNodeEvent = events.node;
  const cloud = buildCloud(base);
  const keeper = code.buildNode(base, {
    cluster,
    network,
    resources,
    devices,
    runtimeStatus,
    recordNodeEvent,
    volumesInUse,
    shutdownProblem: () => progress.problem,
    pressure: node.pressure,
    config: nodeConfig,
    cloud,
  });
  const pods = code.buildApiPods(base, { cluster, sight, workers: engine.workers });
  const { serverTLSBootstrap } = base.config.kubelet;
  const serving = serverTLSBootstrap ? code.buildServingCertificate(base, cluster) : undefined;
  return {
    keeper,
    isReported: (uid) => pods.isReported(uid),
    servingCertificate: () => serving?.state,
    async start() {
      base.metrics.startup.begin();
      if (cloud !== undefined) base.scope.spawn("cloud", (signal) => cloud.run(signal));
      keeper.start(base.scope);
      // Before anything is waited for: pods begin to report in this very moment.
      pods.start(base.scope);
      await serving?.start(base.scope);
    },
  };
}

/** What those who ask the agent are shown. */
function listenerPorts(parts: AgentParts, inputs: AgentInputs): NodeApiPorts {
  const { base, cluster, engine, sight, node, volumes } = parts;
  const { config, clock, metrics, cri, link, process } = base;
  const measured = { node: node.context, observer: sight.observer, volumes: volumes.volumes };
  const statistics = new LazyStatistics(
    base.scope,
    () => buildStatistics(base, measured),
    () => link.connected !== undefined,
  );
  return {
    views: engine.views,
    runtimeViews: sight.observer,
    runtime: cri.runtime,
    health: base.health,
    figures: metrics.figures,
    statistics,
    reviews:
      cluster === undefined || inputs.cluster === undefined
        ? noReviews
        : metrics.kube.reviews(inputs.cluster.parts.kubeReviews(cluster.clients.reviews), clock),
    configz: process.configz,
    rollout: inputs.rollout?.desk,
    dryRuns: buildDryRuns(parts),
    planManifest: buildManifestPlan(parts),
    dashboard: buildDashboard({ ...parts, statistics }),
    commandLine: process.commandLine,
    facts: { version: NODELET_VERSION, kubeletVersion: config.reportedVersion, startedAt: clock.now() },
    logVerbosity: process.logControl,
    self: buildSelfViews(parts),
    plans: { shutdown: () => parts.shutdown.report() },
    tracer: base.tracer,
    pulls: (signal) => parts.images.images.pulls(signal),
    resources: async () => {
      const pods = engine.views.pods();
      return { ...(await parts.placed.report(pods)), claims: parts.claims?.report(pods) ?? [] };
    },
    clock,
    log: base.log.named("server"),
  };
}
