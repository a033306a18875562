import { join } from "node:path";
import { CgroupPaths, cgroupReader } from "../connections/host/index.ts";
import type { Recorders } from "../connections/kube/index.ts";
import { type PodUid, podUidInPath, uidOf } from "../ground/model/index.ts";
import { OomMetrics } from "../node/metrics/index.ts";
import { killsByPod, OomWatch, SeenRecords, type TellOfKillPorts, tellOfKill } from "../node/oom/index.ts";
import type { NodeContext } from "../pod/runtime/index.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

interface OomParts {
  readonly oom: OomWatch;
  readonly sight: PodSight;
  readonly events: Recorders;
  readonly context: NodeContext;
}

/** Who learns of processes that the kernel killed for want of memory; those who show pods ask it. */
export function buildOomWatch(base: Foundation, events: Recorders): OomWatch {
  const { clock, log, host, rootDir, metrics } = base;
  const { onKill } = new OomMetrics(metrics.figures.main);
  return new OomWatch({
    clock,
    log: log.named("oom"),
    openKernelLog: host.openKernelLog,
    killsOfMachine: host.oomKills,
    seen: new SeenRecords(join(rootDir, "nodelet", "kernel-log.json"), host.facts.machine.bootId),
    recordNodeEvent: events.node,
    onKill,
  });
}

/** Tells the users of pods, and keeps watching. */
export function followOom(base: Foundation, parts: OomParts): { run(signal: AbortSignal): Promise<void> } {
  const telling = killTelling(base, parts);
  parts.oom.containerKilled.on((id, kill) => {
    base.scope.spawn("tell of a kill", (signal) => tellOfKill(id, kill, telling, signal));
  });
  return { run: (signal) => parts.oom.run(() => killsOfContainers(base, parts), signal) };
}

/** By the counters of the cgroups themselves, of containers that run. */
function killsOfContainers({ host }: Foundation, { sight, context }: OomParts): Iterable<readonly [string, number]> {
  const reader = cgroupReader(host.facts.cgroups);
  const paths = new CgroupPaths(reader, context.cgroups);
  return killsByPod(sight.observer.all(), function* ({ uid, containers }) {
    const podPath = paths.podPath(uid);
    if (podPath === undefined) return;
    const pathOf = paths.below(podPath);
    for (const { id, state } of containers) {
      const path = state === "running" ? pathOf(id) : undefined;
      if (path !== undefined) yield [id, reader.oomKills(path) ?? 0] as const;
    }
  });
}

function killTelling({ log, wakes }: Foundation, { sight, events, context }: OomParts): TellOfKillPorts {
  const { observer, table } = sight;
  return {
    log: log.named("oom"),
    ownerOf: (id) => observer.ownerOf(id),
    podOfCgroup: (path) => podUidInPath(context.cgroups, path) as PodUid | undefined,
    latest: (uid) => observer.latest(uid),
    inspect: (uid, signal) => observer.look(uid, signal),
    podOf: (uid) => table.pods().find((pod) => uidOf(pod) === uid),
    recordEvent: events.pod,
    doubt(uid) {
      observer.doubt(uid);
      wakes.runtimePod.tell(uid, undefined);
    },
  };
}
