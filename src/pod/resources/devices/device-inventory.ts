import type { ListedDevice } from "../../../connections/plugins/index.ts";
import type { DeviceAmounts } from "../../../ground/model/index.ts";

type DeviceList = ReadonlyMap<string, ListedDevice>;

/** What is known of a resource that plugins offer, or have offered. */
export type DeviceResource =
  | { readonly step: "listed"; readonly devices: DeviceList; readonly healthy: DeviceList }
  /** Its plugin has left, or has not come since the agent started; what it last listed is out of order until it comes. */
  | { readonly step: "awaited"; readonly since: number; readonly devices: DeviceList }
  /** It was awaited too long. */
  | { readonly step: "removed" };

/** As long as a plugin that is replaced, or a machine that has just started, may take. */
export const awaitPluginMs = 5 * 60_000;

/** The devices of this node, by resource. Times are on the clock that is never set. */
export class DeviceInventory {
  readonly #resources = new Map<string, DeviceResource>();
  /** Whose plugin has been there since the agent started. */
  readonly #met = new Set<string>();

  get(resource: string): DeviceResource | undefined {
    return this.#resources.get(resource);
  }

  get names(): readonly string[] {
    return [...this.#resources.keys()];
  }

  /** Whether its plugin has listed something since the agent started. */
  hasMet(resource: string): boolean {
    return this.#met.has(resource);
  }

  /** An earlier run of the agent knew it, or its plugin has just registered. */
  expect(resource: string, now: number): void {
    const known = this.#resources.get(resource);
    if (known === undefined || known.step === "removed") {
      this.#resources.set(resource, { step: "awaited", since: now, devices: new Map() });
    }
  }

  /** Returns the ids whose health or presence is another than before. */
  list(resource: string, listed: readonly ListedDevice[]): ReadonlySet<string> {
    const before = devicesOf(this.#resources.get(resource));
    const wasListed = this.#resources.get(resource)?.step === "listed";
    // Of an id that is listed twice, the last says what holds.
    const devices = new Map(listed.map((device) => [device.id, device]));
    const changed = new Set<string>();
    for (const [id, { isHealthy }] of devices) {
      const known = before.get(id);
      if (!wasListed || known?.isHealthy !== isHealthy) changed.add(id);
    }
    for (const id of before.keys()) if (!devices.has(id)) changed.add(id);
    const healthy = new Map([...devices].filter(([, { isHealthy }]) => isHealthy));
    this.#resources.set(resource, { step: "listed", devices, healthy });
    this.#met.add(resource);
    return changed;
  }

  lose(resource: string, now: number): void {
    const known = this.#resources.get(resource);
    if (known?.step !== "listed") return;
    this.#resources.set(resource, { step: "awaited", since: now, devices: known.devices });
  }

  /** When the plugin that is awaited longest left; undefined: none is. */
  awaitedSince(): number | undefined {
    const times = [...this.#resources.values()].flatMap((known) => (known.step === "awaited" ? known.since : []));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  /** Gives up plugins that have been awaited too long. Returns whether there were any. */
  giveUp(now: number): boolean {
    let some = false;
    for (const [resource, known] of this.#resources) {
      if (known.step !== "awaited" || now - known.since < awaitPluginMs) continue;
      this.#resources.set(resource, { step: "removed" });
      some = true;
    }
    return some;
  }

  /** Healthy now; none of a resource whose plugin is not there. */
  healthy(resource: string): DeviceList {
    const known = this.#resources.get(resource);
    return known?.step === "listed" ? known.healthy : new Map();
  }

  /** Healthy ids by resource, of all that are not given up. */
  registered(): ReadonlyMap<string, readonly string[]> {
    const names = this.names.filter((name) => this.#resources.get(name)?.step !== "removed");
    return new Map(names.map((name) => [name, [...this.healthy(name).keys()].sort()]));
  }

  amounts(): DeviceAmounts {
    const capacity = new Map<string, number>();
    const allocatable = new Map<string, number>();
    const removed: string[] = [];
    for (const [resource, known] of this.#resources) {
      if (known.step === "removed") removed.push(resource);
      else {
        capacity.set(resource, known.devices.size);
        allocatable.set(resource, known.step === "listed" ? known.healthy.size : 0);
      }
    }
    return { capacity, allocatable, removed };
  }
}

export function devicesOf(resource: DeviceResource | undefined): DeviceList {
  return resource === undefined || resource.step === "removed" ? new Map() : resource.devices;
}
