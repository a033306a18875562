import { resources } from "../connections/kube/index.ts";
import { type AgentConfig, evictionSettingsOf } from "../ground/config/index.ts";
import type { ConfigApi, Turn } from "../node/rollout/index.ts";
import type { HealthRegistry } from "../node/server/index.ts";
import { logRotationSettings } from "../pod/runtime/index.ts";
import type { AgentParts } from "./build-agent.ts";
import type { Cluster } from "./build-cluster.ts";

/** How the agent does, by the names of its checks. */
export function checksOf(health: HealthRegistry): ReturnType<Turn["checks"]> {
  return new Map(
    health.read().map(({ name, health: state }) => [name, state.state === "ok" ? "ok" : { reason: state.reason }]),
  );
}

/** Takes over every setting that may change at once (`when-changed.ts` says which those are). */
export function applyLive({ base, eviction, images, upkeep }: AgentParts, config: AgentConfig): void {
  base.process.onSettings(config);
  eviction.manager.configure(evictionSettingsOf(config));
  images.collection.configure(config);
  upkeep.rotation.configure(logRotationSettings(config));
}

/** Where the configuration of a node in a cluster may come from. */
export function configApi({ own, clients, objects }: Cluster): ConfigApi {
  return {
    node: () => own.node,
    onNode: (listener) => own.onNode(() => listener()),
    get: ({ namespace, name }, signal) => clients.main.get(resources.configMaps, { namespace, name }, {}, signal),
    watch: ({ namespace, name }, onChange) =>
      objects.watch({ kind: "configmap", namespace, name }, () => onChange(), "the configuration of this node"),
  };
}
