import { type Machine, readFileSystem, readHugePages } from "../connections/host/index.ts";
import { type AgentConfig, capacitySettingsOf } from "../ground/config/index.ts";
import {
  allocatableOf,
  amountsOf,
  type CapacityFacts,
  type CapacitySettings,
  capacityOf,
  type NodeStatus,
  type ResourceAmounts,
} from "../ground/model/index.ts";

/**
 * What this machine has for pods. The Node's status, admission and what containers are told of the node all come from
 * here, so that nobody is promised what another part refuses.
 */
export class NodeResources {
  readonly facts: Pick<CapacityFacts, "hugePages"> & { readonly machine: Machine };
  readonly #settings: CapacitySettings;
  readonly #rootDir: string;
  #rootFilesystemBytes: bigint | undefined;
  #present: () => NodeStatus | undefined = () => undefined;

  private constructor(settings: CapacitySettings, facts: NodeResources["facts"], rootDir: string) {
    this.#settings = settings;
    this.facts = facts;
    this.#rootDir = rootDir;
  }

  static async read(config: AgentConfig, machine: Machine, rootDir: string): Promise<NodeResources> {
    const facts = { machine, hugePages: await readHugePages() };
    const resources = new NodeResources(capacitySettingsOf(config), facts, rootDir);
    await resources.rootFilesystemBytes().catch(() => undefined);
    return resources;
  }

  /** What others have put beside it into the Node's status, such as resources that an administrator counts. */
  besides(present: () => NodeStatus | undefined): void {
    this.#present = present;
  }

  /** Reads it anew: a filesystem may grow. */
  async rootFilesystemBytes(): Promise<bigint> {
    this.#rootFilesystemBytes = (await readFileSystem(this.#rootDir)).capacityBytes;
    return this.#rootFilesystemBytes;
  }

  /** What pods may use, `pods` themselves included. */
  allocatable(): ResourceAmounts {
    const present = this.#present();
    const devices = noDevices;
    const facts = { ...this.facts, devices };
    const capacity = capacityOf(this.#settings, facts, this.#rootFilesystemBytes, present?.capacity ?? {});
    return amountsOf(allocatableOf(this.#settings, capacity, devices, present?.allocatable ?? {}));
  }
}

/** Device plugins are not there yet. */
export const noDevices = { capacity: new Map(), allocatable: new Map(), removed: [], hasCheckpoint: true } as const;
