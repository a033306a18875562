import { join } from "node:path";
import { resources } from "../connections/kube/index.ts";
import { DraDrivers, type PluginHandler } from "../connections/plugins/index.ts";
import type { TaskScope } from "../ground/base/index.ts";
import {
  type Container,
  containerNamed,
  type IdentifiedPod,
  type Pod,
  type PodUid,
  type ResourceStatus,
} from "../ground/model/index.ts";
import type { PodResourcesPorts } from "../node/server/index.ts";
import { ClaimHealth, ClaimManager, ClaimSweep, claimReport, claimsShown, diskFiles } from "../pod/resources/index.ts";
import type { Membership } from "./build-volumes.ts";
import type { Foundation } from "./foundation.ts";

export interface ClaimParts {
  readonly manager: ClaimManager;
  /** Who takes the drivers that register. */
  readonly drivers: PluginHandler;
  /** How the devices of a container's claims are; none where that is not shown. */
  healthOf(pod: IdentifiedPod, container: string): readonly ResourceStatus[];
  /** What those see of a container's claims who ask which devices it has. */
  shownTo(pod: IdentifiedPod, container: Container): ReturnType<PodResourcesPorts["claimsOf"]>;
  /** Which claims are in use, for people. */
  report(pods: readonly Pod[]): readonly object[];
  /** Every source has spoken: claims of pods that are gone can be given back, now and from now on. */
  podsKnown(): void;
  start(scope: TaskScope): Promise<void>;
}

/** Resource claims of pods, and the drivers that make their devices ready; undefined where there are none. */
export function buildClaims(
  base: Foundation,
  { membership, holds }: { readonly membership: Membership | undefined; readonly holds: (uid: PodUid) => boolean },
): ClaimParts | undefined {
  const { config, clock, scope, ledger, wakes, rootDir, metrics } = base;
  const { gates } = config;
  if (!gates.enabled("DynamicResourceAllocation")) return undefined;
  const log = base.log.named("claims");
  const followsHealth = gates.enabled("ResourceHealthStatus");
  const drivers = new DraDrivers({ scope, clock, log, followsHealth });
  const manager = new ClaimManager({
    scope,
    clock,
    log,
    ledger,
    settings: { extendedResources: gates.enabled("DRAExtendedResource") },
    driver: (name) => drivers.of(name),
    getClaim: claimsFrom(membership),
    path: join(rootDir, "dra_manager_state"),
    files: diskFiles,
    onChange: wakes.pod.tell,
    onOperation: metrics.claims.onOperation,
    onCall: metrics.claims.onCall,
  });
  metrics.claims.show(() => manager.state.values());
  const health = new ClaimHealth({ clock, claims: manager, onHealth: wakes.pod.tell });
  drivers.health.on((driver, devices) => health.reported(driver, devices));
  drivers.healthLost.on((driver) => health.lost(driver));
  wakes.left.on((uid) => manager.forget(uid));
  const sweep = new ClaimSweep({ scope, clock, log, manager, holds });
  drivers.registered.on((driver) => {
    manager.registered(driver);
    sweep.soon();
  });
  const slices = membership?.code.buildResourceSlices(base, membership.cluster);
  drivers.presence.on((driver, isThere) => slices?.driverChanged(driver, isThere, scope));
  return {
    manager,
    drivers,
    healthOf(pod, name) {
      const container = followsHealth ? containerNamed(pod, name)?.container : undefined;
      return container === undefined ? [] : health.of(pod, container);
    },
    shownTo: (pod, container) => claimsShown(manager.claimsOf(pod, container)),
    report: (pods) =>
      claimReport(
        {
          state: manager.state,
          isPrepared: (key) => manager.isPrepared(key),
          isRegistered: (driver) => drivers.isRegistered(driver),
        },
        pods,
      ),
    podsKnown: () => sweep.podsKnown(),
    async start(running) {
      await manager.load();
      slices?.start(running);
      running.spawn("claims of pods that are gone", (signal) => sweep.run(signal));
    },
  };
}

function claimsFrom(membership: Membership | undefined): ConstructorParameters<typeof ClaimManager>[0]["getClaim"] {
  return async (namespace, name, signal) => {
    if (membership === undefined) throw new Error("there is no API server");
    const { main } = membership.cluster.clients;
    return main.get(resources.resourceClaims, { namespace, name }, {}, signal);
  };
}
