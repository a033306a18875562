import type { Machine } from "../../connections/host/index.ts";
import { type AgentConfig, capacitySettingsOf } from "../../ground/config/index.ts";
import {
  allocatableOf,
  amountsOf,
  type CapacityFacts,
  type CapacitySettings,
  capacityOf,
  type DeviceAmounts,
  type NodeStatus,
  type ResourceAmounts,
} from "../../ground/model/index.ts";

/**
 * What this machine has for pods. The Node's status, admission and what containers are told of the node all come from
 * here, so that nobody is promised what another part refuses.
 */
export class NodeResources {
  readonly facts: Pick<CapacityFacts, "hugePages"> & { readonly machine: Machine };
  readonly #settings: CapacitySettings;
  readonly #ports: NodeResourcePorts;
  #rootFilesystemBytes: bigint | undefined;

  constructor(config: AgentConfig, facts: NodeResources["facts"], ports: NodeResourcePorts) {
    this.#settings = capacitySettingsOf(config);
    this.facts = facts;
    this.#ports = ports;
  }

  /** Reads it anew: a filesystem may grow. */
  async rootFilesystemBytes(): Promise<bigint> {
    this.#rootFilesystemBytes = await this.#ports.rootFilesystemBytes();
    return this.#rootFilesystemBytes;
  }

  /** What pods may use, `pods` themselves included. */
  allocatable(): ResourceAmounts {
    const present = this.#ports.present();
    const devices = this.#ports.devices();
    const facts = { ...this.facts, devices };
    const capacity = capacityOf(this.#settings, facts, this.#rootFilesystemBytes, present?.capacity ?? {});
    return amountsOf(allocatableOf(this.#settings, capacity, devices, present?.allocatable ?? {}));
  }
}

export interface NodeResourcePorts {
  /** Size of the filesystem that holds the root directory. */
  readonly rootFilesystemBytes: () => Promise<bigint>;
  /** What others have put beside it into the Node's status, such as resources that an administrator counts. */
  readonly present: () => NodeStatus | undefined;
  /** What plugins offer, with what pods have already. */
  readonly devices: () => DeviceAmounts;
}
