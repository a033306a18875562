import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { DashboardPorts } from "../beside/dashboard/index.ts";
import { cgroupReader, readBootTime } from "../connections/host/index.ts";
import { CpuSet, lazily, runProgram } from "../ground/base/index.ts";
import { NODELET_VERSION } from "../ground/config/index.ts";
import type { PodUid } from "../ground/model/index.ts";
import { type DashboardPages, type LazyStatistics, loadLogs, loadSummary } from "../node/server/index.ts";
import type { AgentParts } from "./build-agent.ts";

interface DashboardParts extends AgentParts {
  readonly statistics: LazyStatistics;
}

/** The pages for people. Nothing of them is loaded or made before somebody looks. */
export function buildDashboard(parts: DashboardParts): DashboardPages {
  const { clock, log, rootDir, host, scope } = parts.base;
  const startedAt = clock.now();
  const load = lazily(async () => {
    const { loadDashboard } = await import("../beside/dashboard/index.ts");
    const Loaded = await loadDashboard();
    return new Loaded(dashboardPorts(parts, startedAt), assetsDirectory, scope);
  });
  return {
    answer: async (call) => (await load()).answer(call, { type: "gate" }),
    async listen(where, listening) {
      const { DashboardListener } = await import("../beside/dashboard/index.ts");
      const listener = new DashboardListener(where, {
        clock,
        log: log.named("dashboard"),
        tokenFile: join(rootDir, "nodelet", "dashboard.json"),
        bootId: host.facts.machine.bootId,
        dashboard: load,
      });
      if (await listener.listen()) listening.spawn("dashboard", (signal) => listener.serve(signal));
    },
  };
}

/** Beside the bundle, where the build has put them. */
const ownProgram = fileURLToPath(new URL("../bin/nodelet", import.meta.url));
const assetsDirectory = fileURLToPath(new URL("dashboard/", import.meta.url));

function dashboardPorts(parts: DashboardParts, startedAt: number): DashboardPorts {
  const { base, engine, volumes, events, node, sight, images } = parts;
  const { clock, config, host, link, health } = base;
  const { views } = engine;
  const { machine, cgroups } = host.facts;
  return {
    clock,
    log: base.log.named("dashboard"),
    facts: {
      name: config.nodeName,
      version: NODELET_VERSION,
      kubeletVersion: config.reportedVersion,
      kernel: machine.kernelVersion,
      os: machine.osImage,
      architecture: machine.architecture,
      cgroupVersion: cgroups.version,
      cpus: machine.cpus.logical,
      memoryBytes: machine.memoryBytes,
      startedAt,
      bootedAt: readBootTime(),
    },
    pods: {
      all: () => views.pods(),
      watch: (listener) => views.watchPods(listener),
      ledger: (uid) => views.ledger(uid),
      watchLedgers: (listener) => base.ledger.watch(listener),
      probes: (uid) => engine.probes.shown(uid),
      volumes: (uid) => volumes.volumes.shown(uid),
      measureVolumes: (uid, signal) => volumes.volumes.measure(uid, signal),
    },
    health: () => health.read(),
    node: () => nodeShown(parts),
    cgroups: cgroupReader(cgroups),
    naming: () => (link.connected === undefined ? undefined : node.context.cgroups),
    disk: () => host.pressure.fileSystem(base.rootDir),
    events: () => events.recent(),
    images: {
      pulls: (signal) => images.images.pulls(signal),
      backoffs: () => images.images.backoffs(),
      foresee: (signal) => images.collection.foresee("usual", signal),
    },
    storage: storageShown(parts),
    machine: machineShown(parts),
    config,
    process: processShown(parts),
    runDoctor: (signal) => {
      const args = ["doctor", "--json", `--root-dir=${base.rootDir}`];
      return runProgram({ program: ownProgram, args, env: { ...base.process.environment } }, clock, signal);
    },
    async copyLog({ pod, container, previous, follow, tailLines, hasTimes }, sink, signal) {
      const copyLog = await loadLogs();
      const options = { previous, follow, tailLines, timestamps: hasTimes, limitBytes: undefined, since: undefined };
      const named = { pod, uid: pod.metadata?.uid as PodUid };
      const from = { views, runtimeViews: sight.observer, runtime: base.cri.runtime, clock };
      await copyLog({ named, container, options: { ...options, stream: "All" } }, sink, from, signal);
    },
  };
}

function nodeShown({ base, cluster, member, node, sight }: AgentParts): ReturnType<DashboardPorts["node"]> {
  const { link, host } = base;
  const { runtimeProblem, networkProblem } = sight.runtimeStatus;
  return {
    node: cluster?.own.node,
    runtime: link.connected?.identity,
    runtimeProblem,
    networkProblem,
    pressure: node.pressure.conditions,
    allocatable: node.resources.allocatable(),
    pidLimit: host.facts.pidLimit,
    api: cluster && {
      hasSynced: cluster.pods.hasSynced,
      heardAt: cluster.pods.heardAt,
      problem: cluster.pods.problem,
      nextTryAt: cluster.pods.nextTryAt,
      lease: member?.keeper.lease.renewal,
    },
  };
}

function storageShown({ sight, volumes, statistics }: DashboardParts): DashboardPorts["storage"] {
  return {
    drivers: () => volumes.csiDriverNames(),
    async leftovers(signal) {
      return await volumes.volumes.leaving(await sight.podsInUse(signal));
    },
    async localUse(signal) {
      const summaryOf = await loadSummary();
      const { pods } = await summaryOf(await statistics.get(), signal);
      return (pods ?? []).map(({ podRef, "ephemeral-storage": use }) => ({
        uid: podRef.uid,
        usedBytes: use?.usedBytes ?? 0,
        inodes: use?.inodesUsed ?? 0,
      }));
    },
  };
}

function machineShown({ base }: DashboardParts): DashboardPorts["machine"] {
  const { host, rootDir, config } = base;
  return {
    async fileSystems() {
      const places = [
        { what: "pods and agent", path: rootDir },
        { what: "logs of pods", path: config.kubelet.podLogsDir },
        { what: "the machine's root", path: "/" },
      ];
      const looked: Awaited<ReturnType<DashboardPorts["machine"]["fileSystems"]>>[number][] = [];
      for (const { what, path } of places) {
        const use = await host.pressure.fileSystem(path).catch(() => undefined);
        if (use === undefined) continue;
        looked.push({
          what,
          path,
          usedBytes: Number(use.usedBytes),
          capacityBytes: Number(use.capacityBytes),
          inodesUsed: Number(use.inodesUsed),
          inodes: Number(use.inodes),
        });
      }
      return looked;
    },
    async numa() {
      const { nodes } = await host.readTopology();
      return nodes.map(({ id, cpus, memoryBytes, hugePages }) => ({
        id,
        cpus: CpuSet.of(cpus.map((cpu) => cpu.id)).toString(),
        memoryBytes,
        hugePages: Array.from(hugePages, ([size, bytes]) => ({ sizeBytes: Number(size), bytes })),
      }));
    },
  };
}

function processShown({ base, cluster }: DashboardParts): DashboardPorts["process"] {
  const { process, metrics } = base;
  return {
    pid: process.pid,
    memory: process.memory,
    resources: process.activeResources,
    verbosity: () => process.logControl.verbosity,
    logLines: () => process.logControl.remember().all(),
    metrics: () => metrics.figures.main.text(),
    watches: () => {
      if (cluster === undefined) return [];
      const { pods, services, runtimeClasses } = cluster;
      return Object.entries({ pods, services, runtimeClasses }).map(([name, { heardAt, problem }]) => ({
        name,
        heardAt,
        problem,
      }));
    },
  };
}
