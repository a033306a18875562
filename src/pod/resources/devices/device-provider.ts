import type { PreferenceQuery } from "../../../connections/plugins/index.ts";
import {
  type Container,
  containersOf,
  type IdentifiedPod,
  type PodUid,
  podResources,
  uidOf,
  wholeUnits,
} from "../../../ground/model/index.ts";
import { type Hint, type HintProvider, type Hints, unexpected } from "../topology/hints.ts";
import type { NumaNodes } from "../topology/numa-nodes.ts";
import { DevicesLacking } from "./choose-devices.ts";
import { deviceHints } from "./device-hints.ts";
import { devicesOf } from "./device-inventory.ts";
import type { DeviceManager } from "./device-manager.ts";
import { grantAt } from "./device-state.ts";

export interface DeviceProviderPorts {
  readonly manager: DeviceManager;
  /** What the plugin answered to this question of a pod; undefined: it has to be asked. */
  readonly preferred: (uid: PodUid, resource: string, query: PreferenceQuery) => readonly string[] | undefined;
  /** Somebody works on the pod, or the runtime has it: what it has it keeps, and it gets nothing here. */
  readonly isHere: (uid: PodUid) => boolean;
}

/** Devices, for those who have a pod's resources come from the same NUMA nodes. */
export class DeviceProvider implements HintProvider {
  readonly #ports: DeviceProviderPorts;
  readonly #numa: NumaNodes;

  constructor(numa: NumaNodes, ports: DeviceProviderPorts) {
    this.#numa = numa;
    this.#ports = ports;
  }

  hints(pod: IdentifiedPod, container: Container): Hints {
    const { manager } = this.#ports;
    const uid = uidOf(pod);
    const wanted = [...manager.wanted(container)].map(([resource, count]) => {
      const held = grantAt(manager.state, { uid, container: container.name, resource });
      if (held === undefined && this.#ports.isHere(uid)) return [resource, undefined] as const;
      return [resource, this.#hintsFor(pod, resource, count, held?.ids)] as const;
    });
    return new Map(wanted);
  }

  podHints(pod: IdentifiedPod): Hints {
    const { manager } = this.#ports;
    const uid = uidOf(pod);
    const { limits } = podResources(pod.spec, "without overhead");
    const resources = new Set(containersOf(pod).flatMap(({ container }) => [...manager.wanted(container).keys()]));
    return new Map(
      [...resources].map((resource) => {
        const held = containersOf(pod).flatMap(
          ({ container }) => grantAt(manager.state, { uid, container: container.name, resource })?.ids ?? [],
        );
        if (held.length === 0 && this.#ports.isHere(uid)) return [resource, undefined] as const;
        const ids = held.length === 0 ? undefined : [...new Set(held)];
        return [resource, this.#hintsFor(pod, resource, Number(wholeUnits(limits.get(resource) ?? 0n)), ids)] as const;
      }),
    );
  }

  allocate(pod: IdentifiedPod, container: Container, { nodes }: Hint): void {
    const { manager, preferred, isHere } = this.#ports;
    const uid = uidOf(pod);
    if (isHere(uid)) return;
    const near = nodes === undefined ? undefined : new Set(this.#numa.idsOf(nodes));
    try {
      manager.choose(pod, container, near, (resource, query) => preferred(uid, resource, query));
    } catch (error) {
      throw error instanceof DevicesLacking ? unexpected(error.message) : error;
    }
  }

  mark(): () => void {
    return this.#ports.manager.mark();
  }

  /** Undefined: devices of this resource lie nowhere in particular. What a pod has it keeps, wherever that is. */
  #hintsFor(
    pod: IdentifiedPod,
    resource: string,
    count: number,
    held: readonly string[] | undefined,
  ): readonly Hint[] | undefined {
    const { manager } = this.#ports;
    const devices = devicesOf(manager.inventory.get(resource));
    const numa = { sets: this.#numa.sets(), maskOf: (ids: readonly number[]) => this.#numa.maskOf(ids) };
    if (held !== undefined) {
      return deviceHints({ count: held.length, devices, available: new Set(held), reusable: new Set() }, numa);
    }
    try {
      const available = manager.available(resource);
      return deviceHints({ count, devices, available, reusable: manager.reusable(pod, resource) }, numa);
    } catch (error) {
      if (error instanceof DevicesLacking) return [];
      throw error;
    }
  }
}
