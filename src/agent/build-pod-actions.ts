import { containerHash, uidOf } from "../ground/model/index.ts";
import { FileProbeStore, Probes, probeRunner } from "../pod/probes/index.ts";
import {
  ContainerGc,
  ContainerKiller,
  ContainerRemoval,
  ContainerStarter,
  ContainerUpdates,
  execThrough,
  killAfterFailedHook,
  LifecycleHooks,
  podRemoval,
  StartContexts,
} from "../pod/runtime/index.ts";
import { readVolumeFile } from "../pod/volumes/index.ts";
import { PodCheckpointFiles, PodProbes, PodSetup, type PodSetupPorts, Resizer } from "../pod/workers/index.ts";
import type { PodEngineParts } from "./pod-engine-parts.ts";

/** Everything by which pods are acted upon; what decides about them is connected in build-pod-engine.ts. */
export interface PodActions {
  readonly checkpoints: PodCheckpointFiles;
  readonly probes: Probes;
  readonly podProbes: PodProbes;
  readonly killer: ContainerKiller;
  readonly setup: PodSetup;
  readonly starter: ContainerStarter;
  readonly gc: ContainerGc;
  readonly resizer: Resizer;
}

export function buildPodActions(parts: PodEngineParts): PodActions {
  const { clock, log, ledger, runtime, context, podsDir, recordPodEvent, scope, sight, volumes } = parts;
  const { observer, runtimeStatus } = sight;
  const logs = { podLogsDir: context.podLogsDir, legacyDir: parts.legacyLogDir, log };
  const removal = new ContainerRemoval(logs, { runtime, log });
  const checkpoints = new PodCheckpointFiles({ podsDir, clock, scope, log: log.named("checkpoints") });
  const contexts = new StartContexts({ ...parts, node: context, runtimeStatus, readVolumeFile });
  const exec = execThrough(runtime);
  const probes = new Probes({
    clock,
    log: log.named("probes"),
    scope,
    recordEvent: recordPodEvent,
    ledger,
    onProbe: parts.metrics.probes.onProbe,
    run: probeRunner(exec, clock, { concurrency: 8, runtimeTimeoutMs: parts.settings.runtimeRequestTimeoutMs }),
    store: new FileProbeStore(podsDir, log.named("probes")),
  });
  const hooks = new LifecycleHooks({
    clock,
    scope,
    exec,
    ledger,
    recordEvent: recordPodEvent,
    onNotable: parts.metrics.pods.onHook,
    podIps: async (pod, signal) => contexts.podIps(pod, await observer.look(uidOf(pod), signal)),
  });
  const runPreStop: ConstructorParameters<typeof ContainerKiller>[0]["runPreStop"] = (pod, container, { id }, signal) =>
    hooks.preStop({ pod, container, id }, signal);
  const killer = new ContainerKiller({ runtime, clock, log, ledger, recordEvent: recordPodEvent, runPreStop });
  const setup = new PodSetup({
    podsDir,
    ledger,
    recordEvent: recordPodEvent,
    volumes,
    ...{ cgroups: measuredCgroups(parts), claims: parts.claims },
    removeFromRuntime: podRemoval({ runtime, observer, removal, podLogsDir: context.podLogsDir }),
    forgetCheckpoint: (uid) => checkpoints.forget(uid),
    onGone: parts.wakes.gone.tell,
  });
  const starter = new ContainerStarter({
    runtime,
    clock,
    log,
    ledger,
    recordEvent: recordPodEvent,
    recordNodeEvent: parts.recordNodeEvent,
    hashOf: containerHash,
    noteOwner: (id, uid) => observer.noteOwner(id, uid),
    sandboxContext: contexts.sandbox,
    containerContext: contexts.container,
    ensureImage: parts.images.ensureImage,
    prefetchImage: parts.images.prefetchImage,
    runPostStart: async (pod, container, id, signal) => {
      using end = observer.endOf(uidOf(pod), id);
      const result = await hooks.postStart({ pod, container, id, containerEnded: end.signal }, signal);
      return result.type === "failed" ? result.message : undefined;
    },
    killAfterFailedHook: killAfterFailedHook(observer, killer),
    removeContainer: (container, signal, logs) => removal.remove(container, signal, logs),
    noteResources: async (pod, name, resources) => {
      // An agent that knows what was given and not what was promised would take it back.
      await Promise.allSettled([sight.actuations.noteForGood(pod, name, resources), sight.allocations.saved()]);
    },
    hasItsResources: (pod, container) => sight.actuations.hasGiven(pod, container),
    notePlace: (container, cpus) => parts.cpusets.made(container, cpus),
    onStart: parts.metrics.runtime.onStart,
    legacyLogs: logs,
  });
  return {
    checkpoints,
    probes,
    podProbes: new PodProbes(probes, { hostIPs: parts.hostIPs, podIps: (pod, seen) => contexts.podIps(pod, seen) }),
    killer,
    setup,
    starter,
    gc: buildContainerGc(parts, removal),
    resizer: buildResizer(parts),
  };
}

function buildResizer({ clock, runtime, context, sight, cgroups, placement, resizeSettings }: PodEngineParts): Resizer {
  const { allocations, actuations, wanted, observer } = sight;
  return new Resizer({
    clock,
    allocations,
    actuations,
    pending: (uid) => wanted.resizes.get(uid),
    accepted: wanted.acceptedResizes,
    tellsOfPods: resizeSettings.ofPods,
    // They are made when the agent starts.
    cgroups: {
      raise: (pod, resources) => cgroups.pods.raise(pod, resources),
      lower: (pod, resources) => cgroups.pods.lower(pod, resources),
      follow: (pod) => cgroups.pods.follow(pod),
      memoryLimit: (pod) => cgroups.pods.memoryLimit(pod),
      memoryUsage: (pod) => cgroups.pods.memoryUsage(pod),
      resources: (pod) => cgroups.pods.resources(pod),
    },
    containers: new ContainerUpdates(runtime, context, (uid, name) => placement.of(uid, name)),
    sandboxOf: (uid) => observer.latest(uid)?.sandboxes[0]?.id,
  });
}

function buildContainerGc(parts: PodEngineParts, removal: ContainerRemoval): ContainerGc {
  const { clock, log, runtime, settings, context, sight } = parts;
  const { mux, table, wanted } = sight;
  return new ContainerGc(
    {
      podLogsDir: context.podLogsDir,
      legacyDir: parts.legacyLogDir,
      minimumAgeMs: settings.minimumContainerAgeMs,
      maxPerContainer: settings.maxDeadPerContainer,
      maxInAll: settings.maxDeadContainers,
    },
    {
      runtime,
      clock,
      log: log.named("gc"),
      recordNodeEvent: parts.recordNodeEvent,
      allSourcesReady: () => mux.allReady(),
      mayRemoveContent: (uid) => !table.has(uid) && !wanted.has(uid),
      mayRemoveRuntime: (uid) => table.stateOf(uid)?.step === "finished",
    },
    removal,
  );
}

function measuredCgroups({ cgroups, metrics, clock }: PodEngineParts): PodSetupPorts["cgroups"] {
  const monotonic = (): number => clock.monotonic();
  return {
    ensure: (pod) => metrics.pods.cgroup("create", monotonic, () => cgroups.ensure(pod)),
    remove: (uid, signal) => metrics.pods.cgroup("destroy", monotonic, () => cgroups.remove(uid, signal)),
  };
}
