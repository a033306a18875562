import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { RuntimeService } from "../../connections/cri/index.ts";
import type { Clock, Logger, TaskScope, Tracer } from "../../ground/base/index.ts";
import { type AgentConfig, maskedFlags } from "../../ground/config/index.ts";
import { openGate } from "./api/gate.ts";
import { nodeApiMounts, readOnlyMounts } from "./api/node-api.ts";
import { NodeServer } from "./api/node-server.ts";
import type { ApiMount } from "./api/router.ts";
import type { StatuszFacts } from "./api/zpages.ts";
import { AccessAuthorizer } from "./auth/access-authorizer.ts";
import { Gatekeeper } from "./auth/gatekeeper.ts";
import { PatientReviews, type Reviews } from "./auth/reviews.ts";
import { TokenAuthenticator } from "./auth/token-authenticator.ts";
import type { HealthRegistry } from "./health.ts";
import { containerLogsService } from "./logs/container-logs.ts";
import type { MetricRegistries } from "./metric-registries.ts";
import { metricMounts } from "./metrics/metric-mounts.ts";
import type {
  DashboardPages,
  DryRuns,
  LocalViews,
  LogVerbosity,
  LookAtPulls,
  PlanManifest,
  Plans,
  RolloutDesk,
  RuntimeViews,
  SelfViews,
} from "./ports.ts";
import type { LazyStatistics } from "./stats/lazy-statistics.ts";
import { statsService } from "./stats/stats-service.ts";
import { LiveTls } from "./tls/live-tls.ts";
import { type ServingFiles, servingFiles } from "./tls/serving-files.ts";
import { tlsLimits } from "./tls/tls-options.ts";

export interface NodeApiPorts {
  readonly views: LocalViews;
  readonly runtimeViews: RuntimeViews;
  readonly runtime: RuntimeService;
  readonly health: HealthRegistry;
  readonly figures: MetricRegistries;
  readonly statistics: LazyStatistics;
  /** Who tokens belong to and who may do what; asked only where the configuration says so. */
  readonly reviews: Reviews;
  readonly configz: () => unknown;
  readonly dryRuns: DryRuns;
  readonly planManifest: PlanManifest;
  readonly dashboard: DashboardPages;
  /** The words the agent was started with. */
  readonly commandLine: readonly string[];
  readonly facts: StatuszFacts;
  readonly logVerbosity: LogVerbosity;
  /** For the local socket. */
  readonly plans: Plans;
  readonly pulls: LookAtPulls;
  readonly self: SelfViews;
  readonly resources: () => Promise<object>;
  readonly tracer?: Tracer;
  readonly rollout?: RolloutDesk | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Where the agent keeps what it makes. */
export interface NodeApiPlaces {
  readonly rootDir: string;
  readonly certDir: string;
}

/** Opens the API of the node for those with credentials. Rejects when its port or its certificate can't be had. */
export async function serveNodeApi(
  config: AgentConfig,
  places: NodeApiPlaces,
  ports: NodeApiPorts,
  scope: TaskScope,
): Promise<void> {
  const { kubelet, gates } = config;
  const { clock, log } = ports;
  const files = await certificateFiles(config, places, ports);
  const certificate = kubelet.serverTLSBootstrap ? "late" : "needed";
  const clientCaFile = kubelet.authentication.x509.clientCAFile;
  const live = new LiveTls({ ...files, clientCaFile, certificate }, ports);
  const limits = tlsLimits(kubelet.tlsMinVersion, kubelet.tlsCipherSuites, log);
  const mounts = nodeApiMounts(
    {
      ...kubelet,
      rootDir: places.rootDir,
      enableSystemLogQuery: kubelet.enableSystemLogQuery && gates.enabled("NodeLogQuery"),
      checkpoint: gates.enabled("ContainerCheckpoint"),
      flagz: gates.enabled("ComponentFlagz"),
      statusz: gates.enabled("ComponentStatusz"),
    },
    {
      ...ports,
      onHealthAsked: ports.figures.onHealthAsked,
      figures: figureMounts(ports),
      containerLogs: containerLogsService({ ...ports, splitStreams: gates.enabled("PodLogsQuerySplitStreams") }),
      flags: Object.fromEntries(maskedFlags(config.flagTexts)),
    },
  );
  const where = { host: kubelet.address, port: kubelet.port };
  const gate = gatekeeper(config, ports);
  const onRequest = ports.figures.http.watch("readwrite", () => clock.monotonic());
  const server = new NodeServer(
    where,
    { ...limits, ...(await live.read()) },
    {
      ...{ mounts, gate, clock, log, onRequest },
      ...(ports.tracer !== undefined && { tracer: ports.tracer }),
    },
  );
  await server.listen();
  scope.spawn("node API", (signal) => server.serve(signal));
  scope.spawn("TLS files", (signal) => live.run((material) => server.renewTls(material), signal));
  log.info("Started to listen", { address: where.host, port: server.port });
}

/** Opens the API of the node for everybody: what only shows, in plain HTTP. */
export async function serveReadOnly(
  { kubelet: { address: host, readOnlyPort: port } }: AgentConfig,
  ports: Pick<NodeApiPorts, "views" | "health" | "figures" | "statistics" | "clock" | "log">,
  scope: TaskScope,
): Promise<void> {
  const { clock, log } = ports;
  const mounts = readOnlyMounts({
    ...ports,
    onHealthAsked: ports.figures.onHealthAsked,
    figures: figureMounts(ports),
  });
  const server = new NodeServer({ host, port }, undefined, {
    mounts,
    gate: openGate,
    clock,
    log,
    onRequest: ports.figures.http.watch("readonly", () => clock.monotonic()),
  });
  await server.listen();
  scope.spawn("read-only port", (signal) => server.serve(signal));
  log.info("Started to listen read-only", { address: host, port: server.port });
}

export function figureMounts({
  figures,
  statistics,
  log,
}: Pick<NodeApiPorts, "figures" | "statistics" | "log">): readonly ApiMount[] {
  return [statsService(() => statistics.get()), ...metricMounts(figures, statistics, log)];
}

async function certificateFiles(
  { kubelet, nodeName }: AgentConfig,
  { certDir }: NodeApiPlaces,
  ports: NodeApiPorts,
): Promise<ServingFiles> {
  if (!kubelet.serverTLSBootstrap) return await servingFiles({ ...kubelet, certDir, hostName: nodeName }, ports);
  // Certificate and key are one file, which comes when the API server has signed it; its directory can be watched before.
  await mkdir(certDir, { recursive: true, mode: 0o755 });
  const current = join(certDir, "kubelet-server-current.pem");
  return { certFile: current, keyFile: current };
}

function gatekeeper({ kubelet, gates, nodeName }: AgentConfig, ports: NodeApiPorts): Gatekeeper {
  const { authentication, authorization } = kubelet;
  const { clock, log } = ports;
  const reviews = new PatientReviews({ reviews: ports.reviews, clock, random: Math.random });
  const { cacheAuthorizedTTLMs: allowedTtlMs, cacheUnauthorizedTTLMs: deniedTtlMs } = authorization.webhook;
  const certificates = authentication.x509.clientCAFile !== "";
  const allowAnonymous = authentication.anonymous.enabled;
  if (!certificates && !authentication.webhook.enabled && !allowAnonymous) {
    log.info("No authentication is configured, so the node API refuses every request", { port: kubelet.port });
  }
  return new Gatekeeper({
    tokens: authentication.webhook.enabled
      ? new TokenAuthenticator(authentication.webhook.cacheTTLMs, reviews, clock)
      : undefined,
    certificates,
    allowAnonymous,
    access:
      authorization.mode === "Webhook"
        ? new AccessAuthorizer({ nodeName, allowedTtlMs, deniedTtlMs }, reviews, clock)
        : undefined,
    grain: gates.enabled("KubeletFineGrainedAuthz") ? "fine" : "coarse",
    clock,
    log,
  });
}
