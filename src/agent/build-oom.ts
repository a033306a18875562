import { join } from "node:path";
import { CgroupPaths, cgroupReader } from "../connections/host/index.ts";
import type { Recorders } from "../connections/kube/index.ts";
import { containerNamed, fieldPathOf, uidOf } from "../ground/model/index.ts";
import { OomMetrics } from "../node/metrics/index.ts";
import { type OomKill, OomWatch, SeenRecords } from "../node/oom/index.ts";
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
  parts.oom.containerKilled.on((id, kill) => tell(id, kill, base, parts));
  return { run: (signal) => parts.oom.run(() => killsOfContainers(base, parts), signal) };
}

/** By the counters of the cgroups themselves, of containers that run. */
function* killsOfContainers({ host }: Foundation, { sight, context }: OomParts): Generator<readonly [string, number]> {
  const reader = cgroupReader(host.facts.cgroups);
  const paths = new CgroupPaths(reader, context.cgroups);
  for (const { uid, containers } of sight.observer.all()) {
    const podPath = paths.podPath(uid);
    if (podPath === undefined) continue;
    const pathOf = paths.below(podPath);
    for (const { id, state } of containers) {
      const path = state === "running" ? pathOf(id) : undefined;
      if (path !== undefined) yield [id, reader.oomKills(path) ?? 0];
    }
  }
}

/** Users of the pod are told; and where its container was taken to have ended for another reason, that is put right. */
function tell(id: string, kill: OomKill | undefined, { wakes }: Foundation, { sight, events }: OomParts): void {
  const { observer, table } = sight;
  const uid = observer.ownerOf(id);
  const container = uid && observer.latest(uid)?.containers.find((each) => each.id === id);
  if (uid === undefined || container === undefined) return;
  const pod = table.pods().find((each) => uidOf(each) === uid);
  const { name } = container;
  if (pod !== undefined) {
    const who = kill === undefined ? "A process" : `Process ${kill.process} (pid ${kill.pid})`;
    const message = `${who} of container ${name} was killed because memory ran out`;
    const kind = containerNamed(pod, name)?.kind ?? "regular";
    events.pod(pod, { type: "Warning", reason: "OOMKilling", message, fieldPath: fieldPathOf(kind, name) });
  }
  if (container.state !== "exited") return;
  observer.doubt(uid);
  wakes.runtimePod.tell(uid, undefined);
}
