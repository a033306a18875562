import type { Clock } from "../../ground/base/index.ts";
import { ContainerAllocateResponse, DevicePluginDefinition, type ListAndWatchResponse } from "./gen/device-plugin.ts";
import { callPlugin, PluginError, watchPlugin } from "./rpc.ts";

/** A device as its plugin lists it. */
export interface ListedDevice {
  readonly id: string;
  readonly isHealthy: boolean;
  /** Where it lies; none: nowhere in particular. */
  readonly numaNodes: readonly number[];
}

export interface DevicePluginOptions {
  readonly preStartRequired: boolean;
  readonly givesPreferences: boolean;
}

/** Which devices a plugin would choose. */
export interface PreferenceQuery {
  readonly available: readonly string[];
  readonly mustInclude: readonly string[];
  readonly count: number;
}

/** As much as the kubelet takes. */
const listBytes = 4 * 1024 * 1024;
/** A few paths and variables. All that containers of this node were given is written again with every change of it. */
const grantBytes = 64 * 1024;
const smallBytes = 64 * 1024;
/** More would be rubbish, and cost every other pod of the node. */
const mostDevices = 100_000;
const highestNode = 4095;

const dialMs = 10_000;
/** The kubelet waits for ever, and with it everybody whose pod is to be admitted. */
const allocateMs = 60_000;
const preferenceMs = 10_000;
const preStartMs = 30_000;

/** One device plugin, asked through its socket. It is believed in nothing: every answer has a bound in bytes and time. */
export class DevicePluginClient {
  readonly socketPath: string;
  readonly #clock: Clock;

  constructor(socketPath: string, clock: Clock) {
    this.socketPath = socketPath;
    this.#clock = clock;
  }

  async options(signal: AbortSignal): Promise<DevicePluginOptions> {
    const { preStartRequired, getPreferredAllocationAvailable } = await this.#call(
      "getDevicePluginOptions",
      {},
      { withinMs: dialMs, maxBytes: smallBytes, signal },
    );
    return { preStartRequired, givesPreferences: getPreferredAllocationAvailable };
  }

  /** Every list is the whole one; ends, or throws, when the plugin does. */
  async *lists(signal: AbortSignal): AsyncGenerator<readonly ListedDevice[], void> {
    const { fullName, methods } = DevicePluginDefinition;
    const method = { ...methods.listAndWatch, responseType: boundedList };
    for await (const list of watchPlugin(this.socketPath, fullName, method, {}, { signal, maxBytes: listBytes })) {
      yield devicesOf(list as ListAndWatchResponse);
    }
  }

  /** What the container needs to use these devices, in the form in which it can be kept. */
  async allocate(ids: readonly string[], signal: AbortSignal): Promise<Uint8Array> {
    const request = { containerRequests: [{ devicesIds: [...ids] }] };
    const options = { withinMs: allocateMs, maxBytes: grantBytes, signal };
    const { containerResponses } = await this.#call("allocate", request, options);
    const [first] = containerResponses;
    if (first === undefined) {
      throw new PluginError(
        "Allocate",
        "Internal",
        `no containers return in allocation response for ${ids.length} devices`,
      );
    }
    return ContainerAllocateResponse.encode(first).finish();
  }

  /** Ids that it would choose, the best first. */
  async preferred({ available, mustInclude, count }: PreferenceQuery, signal: AbortSignal): Promise<readonly string[]> {
    const request = {
      containerRequests: [
        { availableDeviceIDs: [...available], mustIncludeDeviceIDs: [...mustInclude], allocationSize: count },
      ],
    };
    const options = { withinMs: preferenceMs, maxBytes: listBytes, signal };
    const { containerResponses } = await this.#call("getPreferredAllocation", request, options);
    return containerResponses[0]?.deviceIDs ?? [];
  }

  async preStart(ids: readonly string[], signal: AbortSignal): Promise<void> {
    const options = { withinMs: preStartMs, maxBytes: smallBytes, signal };
    await this.#call("preStartContainer", { devicesIds: [...ids] }, options);
  }

  #call<Name extends keyof typeof DevicePluginDefinition.methods>(
    name: Name,
    request: Parameters<(typeof DevicePluginDefinition.methods)[Name]["requestType"]["encode"]>[0],
    { withinMs, maxBytes, signal }: { withinMs: number; maxBytes: number; signal: AbortSignal },
  ): Promise<ReturnType<(typeof DevicePluginDefinition.methods)[Name]["responseType"]["decode"]>> {
    const { fullName, methods } = DevicePluginDefinition;
    const options = { deadline: this.#clock.now() + withinMs, signal, maxBytes };
    return callPlugin(this.socketPath, fullName, methods[name], request as never, options) as never;
  }
}

/** Counts before it decodes: a message of the permitted size has room for more devices than anybody could use. */
const boundedList: typeof DevicePluginDefinition.methods.listAndWatch.responseType = {
  ...DevicePluginDefinition.methods.listAndWatch.responseType,
  decode(input, length) {
    const bytes = input instanceof Uint8Array ? input : undefined;
    if (bytes !== undefined && countEntries(bytes) > mostDevices) {
      throw new Error(`the list has more than ${mostDevices} devices`);
    }
    return DevicePluginDefinition.methods.listAndWatch.responseType.decode(input, length);
  },
};

/** Entries of the first field, as far as the message makes sense; what does not is found by whoever decodes it. */
function countEntries(bytes: Uint8Array): number {
  let count = 0;
  let at = 0;
  while (at < bytes.length && bytes[at] === 0x0a) {
    let [length, shift] = [0, 0];
    do {
      at++;
      length += ((bytes[at] ?? 0) & 0x7f) * 2 ** shift;
      shift += 7;
    } while (((bytes[at] ?? 0) & 0x80) !== 0 && shift < 35);
    at += 1 + length;
    count++;
  }
  return count;
}

function devicesOf({ devices }: ListAndWatchResponse): readonly ListedDevice[] {
  return devices.map(({ ID: id, health, topology }) => ({
    id,
    isHealthy: health === "Healthy",
    numaNodes: (topology?.nodes ?? []).map(({ ID }) => Number(ID)).filter((node) => node >= 0 && node <= highestNode),
  }));
}
