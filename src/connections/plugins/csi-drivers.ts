import { type Clock, isAbort, type Logger, messageOf, SerialByKey } from "../../ground/base/index.ts";
import { CsiClient } from "./csi-client.ts";
import type { Plugin, PluginHandler } from "./registration.ts";

/** What a driver says of the node it runs on. */
export interface CsiNodeInfo {
  readonly driver: string;
  readonly nodeId: string;
  readonly topology: Readonly<Record<string, string>>;
  /** 0: no limit. */
  readonly maxVolumes: bigint;
}

/** Port: writes what drivers say of this node where the cluster looks for it. */
export interface CsiNodeRecords {
  announce(info: CsiNodeInfo, signal: AbortSignal): Promise<void>;
  withdraw(driver: string, signal: AbortSignal): Promise<void>;
}

/** No such driver has registered, or it has left. It may come (back) any time. */
export class DriverMissingError extends Error {
  override readonly name = "DriverMissingError";
  constructor(driver: string) {
    super(`driver name ${driver} not found in the list of registered CSI drivers`);
  }
}

/** The storage drivers that are registered on this node. */
export class CsiDrivers implements PluginHandler {
  readonly #drivers = new Map<
    string,
    { readonly endpoint: string; readonly version: Version; readonly client: CsiClient }
  >();
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #records: CsiNodeRecords | undefined;
  readonly #onRegistered: (driver: string) => void;
  readonly #turns = new SerialByKey<string>();

  constructor(ports: {
    readonly clock: Clock;
    readonly log: Logger;
    /** Undefined without an API server. */
    readonly records: CsiNodeRecords | undefined;
    /** A driver can be used now: whatever waited for it may try again. */
    readonly onRegistered: (driver: string) => void;
  }) {
    this.#clock = ports.clock;
    this.#log = ports.log;
    this.#records = ports.records;
    this.#onRegistered = ports.onRegistered;
  }

  names(): readonly string[] {
    return [...this.#drivers.keys()].sort();
  }

  client(driver: string): CsiClient {
    const found = this.#drivers.get(driver);
    if (found === undefined) throw new DriverMissingError(driver);
    return found.client;
  }

  register(plugin: Plugin, signal: AbortSignal): Promise<void> {
    return this.#turns.run(plugin.name, () => this.#register(plugin, signal));
  }

  deregister(plugin: Plugin, signal: AbortSignal): Promise<void> {
    return this.#turns.run(plugin.name, () => this.#deregister(plugin, signal));
  }

  async #register({ name, endpoint, versions }: Plugin, signal: AbortSignal): Promise<void> {
    const version = highestVersion(name, versions);
    const present = this.#drivers.get(name);
    if (present !== undefined && present.endpoint !== endpoint && compare(present.version, version) >= 0) {
      throw new Error(
        `Another driver with the same name is already registered with a higher supported version: "${present.version.join(".")}"`,
      );
    }
    const client = new CsiClient(endpoint, this.#clock);
    const info = await client.nodeInfo(signal);
    if (info.nodeId === "") throw new Error(`CSI driver ${name} gave no id for this node`);
    const topology = info.accessibleTopology?.segments ?? {};
    try {
      await this.#records?.announce(
        { driver: name, nodeId: info.nodeId, topology, maxVolumes: info.maxVolumesPerNode },
        signal,
      );
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#drivers.delete(name);
      throw new Error(`error updating CSINode object with CSI driver node info: ${messageOf(error)}`, { cause: error });
    }
    this.#drivers.set(name, { endpoint, version, client });
    this.#onRegistered(name);
  }

  async #deregister({ name, endpoint }: Plugin, signal: AbortSignal): Promise<void> {
    // Another socket may have taken over the name meanwhile.
    if (this.#drivers.get(name)?.endpoint !== endpoint) return;
    this.#drivers.delete(name);
    try {
      await this.#records?.withdraw(name, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#log.error("Could not remove a CSI driver from the CSINode", error, { driver: name });
    }
  }
}

type Version = readonly number[];

/** The highest version that we speak too, which is 1.x. */
function highestVersion(driver: string, versions: readonly string[]): Version {
  const found = versions
    .map((text) =>
      /^v?(\d+)\.(\d+)(?:\.(\d+))?/
        .exec(text)
        ?.slice(1, 4)
        .map((part) => Number(part ?? 0)),
    )
    .filter((version): version is number[] => version !== undefined && version[0] === 1)
    .toSorted((a, b) => compare(b, a))[0];
  if (found !== undefined) return found;
  throw new Error(`CSI driver ${driver} supports versions [${versions.join(" ")}], but a version 1.x is needed`);
}

function compare(a: Version, b: Version): number {
  for (let index = 0; index < Math.max(a.length, b.length); index++) {
    const difference = (a[index] ?? 0) - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
