import { join } from "node:path";
import { aFewAtOnce, mapAtMost, type TaskScope } from "../ground/base/index.ts";
import { containerHash, type IdentifiedPod, newestOf, type ObservedPod, uidOf } from "../ground/model/index.ts";
import { FileProbeStore, Probes, probeRunner } from "../pod/probes/index.ts";
import {
  anywhere,
  ContainerKiller,
  ContainerRemoval,
  ContainerStarter,
  LifecycleHooks,
  noDeviceGrants,
  PodObserver,
  RuntimeStatus,
  removePodLogs,
  type SandboxContext,
} from "../pod/runtime/index.ts";
import { readVolumeFile } from "../pod/volumes/index.ts";
import { PodCheckpointFiles, type ProbesPort } from "../pod/workers/index.ts";
import { execThrough } from "./exec.ts";
import { sandboxContextOf } from "./node-context.ts";
import type { PodEngineParts } from "./pod-engine-parts.ts";
import { PodSetup } from "./pod-setup.ts";

/** Everything by which pods are seen and acted upon; what decides about them is connected in pod-engine.ts. */
export interface PodActions {
  readonly observer: PodObserver;
  readonly checkpoints: PodCheckpointFiles;
  readonly runtimeStatus: RuntimeStatus;
  readonly probes: Probes;
  readonly probesPort: ProbesPort;
  readonly killer: ContainerKiller;
  readonly setup: PodSetup;
  readonly starter: ContainerStarter;
  readonly removal: ContainerRemoval;
}

export function buildPodActions(parts: PodEngineParts, scope: TaskScope): PodActions {
  const { clock, log, ledger, runtime, node, recordPodEvent } = parts;
  const podsDir = join(node.rootDir, "pods");
  const logs = { podLogsDir: node.podLogsDir, legacyDir: parts.legacyLogDir, log };
  const removal = new ContainerRemoval(logs, { runtime, log });
  const observer = new PodObserver({ runtime, clock });
  const checkpoints = new PodCheckpointFiles({ podsDir, clock, scope, log: log.named("checkpoints") });
  const runtimeStatus = new RuntimeStatus({ runtime, clock, log, onChange: parts.onRuntimeChange });
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
  const podIps = (pod: IdentifiedPod, observed: ObservedPod | undefined): readonly string[] =>
    pod.spec.hostNetwork === true ? parts.hostIPs() : (observed?.ips ?? []);
  const hooks = new LifecycleHooks({
    clock,
    scope,
    exec,
    ledger,
    recordEvent: recordPodEvent,
    onNotable: parts.metrics.pods.onHook,
    podIps: async (pod, signal) => podIps(pod, await observer.inspect(uidOf(pod), signal)),
  });
  const killer = new ContainerKiller({
    runtime,
    clock,
    log,
    ledger,
    recordEvent: recordPodEvent,
    runPreStop: (pod, container, { id }, signal) => hooks.preStop({ pod, container, id }, signal),
  });
  const setup = new PodSetup({
    podsDir,
    ledger,
    recordEvent: recordPodEvent,
    volumes: parts.volumes,
    cgroups: measuredCgroups(parts),
    removeFromRuntime: async (uid, signal) => {
      const observed = await observer.inspect(uid, signal);
      await mapAtMost(aFewAtOnce, observed.containers, (container) => removal.remove(container, signal));
      await mapAtMost(aFewAtOnce, observed.sandboxes, ({ id: podSandboxId }) =>
        runtime.removePodSandbox({ podSandboxId }, { signal }),
      );
      await removePodLogs(node.podLogsDir, (owner) => owner === uid, signal);
    },
    forgetCheckpoint: (uid) => checkpoints.forget(uid),
    onGone: parts.onGone,
  });
  const sandboxContext = (pod: IdentifiedPod): SandboxContext => ({
    ...sandboxContextOf(node, runtimeStatus.handlers, parts.runtimeHandlerOf(pod)),
    volumeGroups: parts.volumes.groupsOf(uidOf(pod)),
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
    sandboxContext: async (pod) => {
      const hostDns = await parts.readHostDns();
      const context = sandboxContext(pod);
      return { ...context, dns: { ...context.dns, hostDns } };
    },
    containerContext: async ({ pod, observed, image }) => ({
      ...sandboxContext(pod),
      image,
      podIps: podIps(pod, observed),
      volumes: parts.volumes.of(uidOf(pod)),
      services: parts.services(),
      readConfigMap: parts.readConfigMap,
      readSecret: parts.readSecret,
      readVolumeFile,
      placement: anywhere,
      devices: noDeviceGrants,
      subPaths: parts.volumes.subPaths,
      containerIdOf: (name) => newestOf(observed, name)?.id,
    }),
    ensureImage: parts.images.ensureImage,
    prefetchImage: parts.images.prefetchImage,
    runPostStart: async (pod, container, id, signal) => {
      const result = await hooks.postStart({ pod, container, id }, signal);
      return result.type === "failed" ? result.message : undefined;
    },
    killAfterFailedHook: async (pod, id, signal) => {
      const found = (await observer.inspect(uidOf(pod), signal)).containers.find((candidate) => candidate.id === id);
      if (found === undefined) return;
      const graceSeconds = pod.spec.terminationGracePeriodSeconds ?? 30;
      const message = "FailedPostStartHook";
      await killer.killContainer({ pod, container: found, graceSeconds, message, preStopDone: new Set() }, signal);
    },
    removeContainer: (container, signal) => removal.remove(container, signal),
    onStart: parts.metrics.runtime.onStart,
    legacyLogs: logs,
  });
  const probesPort: ProbesPort = {
    ensure: (pod) => probes.ensure(pod),
    observe: (pod, observed) => {
      const containers = new Map(observed.containers.toReversed().map((container) => [container.name, container]));
      const podIp = podIps(pod, observed)[0];
      probes.observe(uidOf(pod), { containers, podIp, hostIp: parts.hostIPs()[0] });
    },
    beginTermination: (uid) => probes.beginTermination(uid),
    remove: (uid) => probes.remove(uid),
    result: (uid, container, kind) => probes.result(uid, container.name, kind, container.id),
  };
  return { observer, checkpoints, runtimeStatus, probes, probesPort, killer, setup, starter, removal };
}

function measuredCgroups({ cgroups, metrics, clock }: PodEngineParts): PodEngineParts["cgroups"] {
  const monotonic = (): number => clock.monotonic();
  return {
    ensure: (pod) => metrics.pods.cgroup("create", monotonic, () => cgroups.ensure(pod)),
    remove: (uid, signal) => metrics.pods.cgroup("destroy", monotonic, () => cgroups.remove(uid, signal)),
  };
}
