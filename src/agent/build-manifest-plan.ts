import { Limiter } from "../ground/base/index.ts";
import { uidOf } from "../ground/model/index.ts";
import type { PlanManifest } from "../node/server/index.ts";
import { type ManifestPlanPorts, planManifest } from "../pod/sources/index.ts";
import type { AgentParts } from "./build-agent.ts";

/** What would happen with a manifest, asked through the local socket: the same planners, and nothing is done. */
export function buildManifestPlan(
  parts: Pick<
    AgentParts,
    "base" | "cluster" | "node" | "sources" | "sight" | "engine" | "onTrial" | "cgroups" | "volumes" | "images"
  >,
): PlanManifest {
  const { base, cluster, node, sources, sight, engine, onTrial, cgroups, volumes, images } = parts;
  const ports: ManifestPlanPorts = {
    now: () => base.clock.now(),
    runtimeSeenAt: () => sight.relist.lastSuccessAt,
    readsFiles: base.config.kubelet.staticPodPath !== "",
    foreseeFile: (name, manifest) => sources.foresee(name, manifest),
    announced: (pod) => sources.mux.foresee("file", pod),
    wantedPods: () => sources.mux.pods(),
    decide(pod, replaced) {
      const { admission, placement } = onTrial();
      return { decision: engine.foresee(pod, replaced && uidOf(replaced), admission), placement };
    },
    areSumsBinding: cluster !== undefined,
    allocatable: () => node.resources.allocatable(),
    cgroupOf: (pod, exclusiveCpus) => cgroups.foresee(pod, exclusiveCpus),
    context: node.context,
    volumes: (pod, most, signal) => volumes.volumes.foresee(pod, most, signal),
    images: (pod, most, signal) => images.images.foresee(pod, most, signal),
  };
  // Large manifests are read by few processes, which the node's own need too.
  const turn = new Limiter(1);
  return ({ name, bytes }, signal) => turn.run(() => planManifest(name, bytes, ports, signal), signal);
}
