import type { ReportedHealth } from "../../../connections/plugins/index.ts";
import type { Clock, Timer } from "../../../ground/base/index.ts";
import type { Container, IdentifiedPod, PodUid, ResourceStatus } from "../../../ground/model/index.ts";
import type { ClaimManager } from "./claim-manager.ts";

export interface ClaimHealthPorts {
  readonly clock: Clock;
  readonly claims: Pick<ClaimManager, "state" | "claimsOf">;
  /** The health of a device that the pod has may be another. */
  readonly onHealth: (uid: PodUid) => void;
}

/** What a driver has not said again for so long is not known any more. */
const validMs = 30_000;
const mostDevices = 16_384;

interface KnownHealth {
  readonly health: ReportedHealth["health"];
  readonly at: number;
}

/** How the devices of claims are, as their drivers last said. */
export class ClaimHealth {
  readonly #ports: ClaimHealthPorts;
  readonly #known = new Map<string, Map<string, KnownHealth>>();
  readonly #expiry = new Map<string, Timer>();

  constructor(ports: ClaimHealthPorts) {
    this.#ports = ports;
  }

  reported(driver: string, devices: readonly ReportedHealth[]): void {
    const { clock } = this.#ports;
    const now = clock.monotonic();
    const known = this.#known.get(driver) ?? new Map<string, KnownHealth>();
    this.#known.set(driver, known);
    const changed = new Set<string>();
    for (const [key, { at }] of known) {
      if (now - at <= validMs) continue;
      known.delete(key);
      changed.add(key);
    }
    for (const { pool, device, health } of devices) {
      const key = `${pool}/${device}`;
      const before = known.get(key);
      if (before === undefined && known.size >= mostDevices) continue;
      if (before?.health === health) changed.delete(key);
      else changed.add(key);
      known.set(key, { health, at: now });
    }
    this.#expiry.get(driver)?.cancel();
    this.#expiry.set(
      driver,
      clock.after(validMs + 1, () => this.#tell(driver, undefined)),
    );
    if (changed.size > 0) this.#tell(driver, changed);
  }

  lost(driver: string): void {
    this.#expiry.get(driver)?.cancel();
    this.#expiry.delete(driver);
    if (this.#known.delete(driver)) this.#tell(driver, undefined);
  }

  /** How the container's devices are, by what it calls them. */
  of(pod: IdentifiedPod, container: Container): readonly ResourceStatus[] {
    return this.#ports.claims.claimsOf(pod, container).flatMap(({ label, devices }) => {
      const resources = devices.map(({ driver, pool, device, cdiIds }) => ({
        resourceID: cdiIds[0] ?? `${driver}/${pool}/${device}`,
        health: this.#healthOf(driver, `${pool}/${device}`),
      }));
      return resources.length === 0 ? [] : [{ name: label, resources }];
    });
  }

  #healthOf(driver: string, key: string): ReportedHealth["health"] {
    const known = this.#known.get(driver)?.get(key);
    if (known === undefined || this.#ports.clock.monotonic() - known.at > validMs) return "Unknown";
    return known.health;
  }

  /** Undefined: all of its devices. */
  #tell(driver: string, changed: ReadonlySet<string> | undefined): void {
    const pods = new Set<PodUid>();
    for (const claim of this.#ports.claims.state.values()) {
      const own = claim.drivers.get(driver) ?? [];
      const concerns = own.some(({ pool, device }) => changed?.has(`${pool}/${device}`) ?? true);
      if (concerns) for (const uid of claim.pods) pods.add(uid);
    }
    for (const uid of pods) this.#ports.onHealth(uid);
  }
}
