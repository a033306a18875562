import type { CertificateState } from "../connections/kube/index.ts";
import { configDrift, configReport, mayChangeHost, NODELET_VERSION } from "../ground/config/index.ts";
import type { SelfViews } from "../node/server/index.ts";
import type { AgentParts } from "./build-agent.ts";

/** What the agent knows of itself, put together when somebody asks. */
export function buildSelfViews(parts: AgentParts): SelfViews {
  const { base } = parts;
  const { config, clock, process } = base;
  const startedAt = clock.now();
  return {
    async config() {
      const current = process.currentConfig();
      return { ...configReport(current), startedAt, drift: configDrift(current, await process.reloadConfig()) };
    },
    state: () => ({
      version: NODELET_VERSION,
      kubeletVersion: config.reportedVersion,
      pid: process.pid,
      startedAt,
      now: clock.now(),
      leavesHostAlone: !mayChangeHost(process.environment),
      health: base.health.read(),
      runtime: runtimeOf(parts),
      certificates: certificatesOf(parts),
      events: eventsOf(parts),
      watches: watchesOf(parts),
      diskHistory: parts.upkeep.diskHistory(),
      probes: commandProbes(parts),
    }),
    examined: (found) => base.metrics.doctor.examined(found),
  };
}

function runtimeOf({ base, sight }: AgentParts): object | undefined {
  const { connected } = base.link;
  if (connected === undefined) return undefined;
  const { identity, cgroupDriver, isOutdated } = connected;
  return { ...identity, cgroupDriver, isOutdated, problem: sight.runtimeStatus.runtimeProblem };
}

function certificatesOf({ cluster, member }: AgentParts): Readonly<Record<string, CertificateState | undefined>> {
  return { client: cluster?.clientCertificate(), server: member?.servingCertificate() };
}

function eventsOf({ cluster }: AgentParts): object | undefined {
  return cluster && { waiting: cluster.events.waiting, lost: cluster.events.lost };
}

/** What probes by command cost: how long each takes on average. */
function commandProbes({ base, engine }: AgentParts): readonly object[] {
  return engine.views.pods().flatMap(({ metadata, spec }) =>
    [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].flatMap((container) =>
      (["liveness", "readiness", "startup"] as const).flatMap((type) => {
        if (container[`${type}Probe`]?.exec === undefined) return [];
        const of = { namespace: metadata?.namespace ?? "", pod: metadata?.name ?? "", container: container.name };
        const meanMs = base.metrics.probes.meanMs(type, of);
        return meanMs === undefined ? [] : [{ ...of, type, meanMs }];
      }),
    ),
  );
}

/** How old what we have of the API server is. */
function watchesOf({ base, cluster }: AgentParts): readonly object[] {
  if (cluster === undefined) return [];
  const now = base.clock.monotonic();
  const { pods, services, runtimeClasses } = cluster;
  return Object.entries({ pods, services, runtimeClasses }).map(([of, { hasSynced, heardAt, problem }]) => ({
    of,
    hasSynced,
    heardMs: heardAt === undefined ? undefined : now - heardAt,
    problem,
  }));
}
