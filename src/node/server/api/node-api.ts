import { join } from "node:path";
import type { RuntimeService } from "../../../connections/cri/index.ts";
import type { Clock, Logger } from "../../../ground/base/index.ts";
import type { HealthRegistry } from "../health.ts";
import { sendJson } from "../http.ts";
import type { DashboardPages, LocalViews, LogVerbosity, RuntimeViews } from "../ports.ts";
import { streamServices } from "../streaming/stream-service.ts";
import { setVerbosity } from "../verbosity.ts";
import { AnswerError } from "./answer-error.ts";
import { checkpointService } from "./checkpoint.ts";
import { healthMounts, type OnHealthAsked } from "./health-mounts.ts";
import { logQuery } from "./log-query.ts";
import { podsService, runningPodsService } from "./pods.ts";
import { profilingService } from "./profiling.ts";
import type { ApiHandler, ApiMount } from "./router.ts";
import { runService } from "./run.ts";
import { systemLogsService } from "./system-logs.ts";
import { flagzMount, type StatuszFacts, statuszMount } from "./zpages.ts";

/** Which parts of the API are offered. */
export interface ApiSettings {
  readonly enableDebuggingHandlers: boolean;
  readonly enableSystemLogHandler: boolean;
  readonly enableSystemLogQuery: boolean;
  readonly enableProfilingHandler: boolean;
  readonly enableDebugFlagsHandler: boolean;
  /** Feature gates. */
  readonly checkpoint: boolean;
  readonly flagz: boolean;
  readonly statusz: boolean;
  readonly rootDir: string;
}

/** What the API shows and acts on. */
export interface ApiPorts {
  readonly views: LocalViews;
  readonly runtimeViews: RuntimeViews;
  readonly runtime: RuntimeService;
  readonly health: HealthRegistry;
  readonly onHealthAsked: OnHealthAsked;
  /** Metrics, statistics and container logs, each a part of its own. */
  readonly figures: readonly ApiMount[];
  readonly containerLogs: ApiMount;
  readonly dashboard: Pick<DashboardPages, "answer">;
  readonly configz: () => unknown;
  readonly flags: Readonly<Record<string, string>>;
  readonly commandLine: readonly string[];
  readonly facts: StatuszFacts;
  readonly logVerbosity: LogVerbosity;
  readonly clock: Clock;
  readonly log: Logger;
}

const systemLogDir = "/var/log";
const dashboardPath = "/dashboard/";
const debugPaths = [
  dashboardPath,
  "/run/",
  "/exec/",
  "/attach/",
  "/portForward/",
  "/containerLogs/",
  "/runningpods/",
  "/debug/pprof/",
  "/logs/",
];
const disabled = (path: string, reason: string): ApiMount => ({ type: "disabled", path, reason });
const noDebugging: readonly ApiMount[] = debugPaths.map((path) => disabled(path, "Debug endpoints are disabled."));

/** The paths of the port that asks for no credentials: they show, and change nothing. */
export function readOnlyMounts(
  ports: Pick<ApiPorts, "health" | "onHealthAsked" | "figures"> & { readonly views: Pick<LocalViews, "pods"> },
): readonly ApiMount[] {
  const { views, health, onHealthAsked, figures } = ports;
  return [
    ...healthMounts(health, "names", onHealthAsked),
    podsService(views),
    ...figures.map(withoutChange),
    ...noDebugging,
  ];
}

/** Upstream lets anybody reset the counts of /metrics/slis here; we do not. */
function withoutChange(mount: ApiMount): ApiMount {
  if (mount.type !== "path") return mount;
  const handle: ApiHandler = (call) => {
    if (call.request.method !== "DELETE") return mount.handle(call);
    throw new AnswerError(405, "405: Method Not Allowed");
  };
  return { ...mount, handle };
}

/** The paths of the authenticated port. */
export function nodeApiMounts(settings: ApiSettings, ports: ApiPorts): readonly ApiMount[] {
  const { views, health, onHealthAsked, figures } = ports;
  const always = [...healthMounts(health, "reasons", onHealthAsked), podsService(views), ...figures];
  if (!settings.enableDebuggingHandlers) return [...always, ...noDebugging];
  const mounts: readonly ApiMount[] = [...always, ...debuggingMounts(settings, ports)];
  if (!settings.statusz) return mounts;
  const paths = (): readonly string[] => mounts.flatMap((mount) => (mount.type === "paths" ? [] : [mount.path]));
  return [...mounts, statuszMount(ports.facts, paths, ports.clock)];
}

function debuggingMounts(settings: ApiSettings, ports: ApiPorts): readonly ApiMount[] {
  const { runtime, logVerbosity, clock, log } = ports;
  const journal = { clock, root: systemLogDir, journalctl: "journalctl" };
  const query = settings.enableSystemLogQuery ? logQuery(journal) : undefined;
  const configz: ApiMount = {
    type: "path",
    path: "/configz",
    handle: ({ response }) => sendJson(response, ports.configz()),
  };
  const verbosity: ApiMount = {
    type: "path",
    path: "/debug/flags/v",
    handle: ({ request, response }) => setVerbosity(request, response, logVerbosity, log),
  };
  return [
    ports.containerLogs,
    ...streamServices(ports),
    runService(ports),
    runningPodsService(runtime),
    dashboardService(ports.dashboard),
    configz,
    settings.enableSystemLogHandler
      ? systemLogsService(systemLogDir, query)
      : disabled("/logs/", "logs endpoint is disabled."),
    settings.enableProfilingHandler
      ? profilingService(ports)
      : disabled("/debug/pprof/", "profiling endpoint is disabled."),
    settings.enableDebugFlagsHandler ? verbosity : disabled("/debug/flags/v", "flags endpoint is disabled."),
    ...(settings.checkpoint ? [checkpointService({ ...ports, directory: join(settings.rootDir, "checkpoints") })] : []),
    ...(settings.flagz ? [flagzMount(ports.flags)] : []),
  ];
}

/** The pages for people; who may see them may see all of the node. */
function dashboardService(dashboard: ApiPorts["dashboard"]): ApiMount {
  const handle: ApiHandler = ({ request, response, params, query }) =>
    dashboard.answer({ request, response, path: params["path"] ?? "", query });
  return {
    type: "service",
    path: dashboardPath,
    routes: [
      { methods: ["GET"], pattern: "", handle },
      { methods: ["GET"], pattern: "{path*}", handle },
    ],
  };
}
