import {
  type Clock,
  goQuote,
  isAbort,
  LinkedSignal,
  type Logger,
  messageOf,
  SerialByKey,
  type TaskScope,
  type Timer,
  TokenBucket,
  Topic,
} from "../../ground/base/index.ts";
import { GrpcError } from "../../ground/grpc/index.ts";
import { isExtended } from "../../ground/model/index.ts";
import { DevicePluginClient, type DevicePluginOptions, type ListedDevice } from "./device-plugin-client.ts";
import type { Plugin, PluginHandler } from "./registration.ts";

export interface DevicePluginPorts {
  readonly scope: TaskScope;
  readonly clock: Clock;
  readonly log: Logger;
}

export const devicePluginVersion = "v1beta1";
/** A machine has a dozen at the most; each may list as many devices as it likes within its own bound. */
const mostResources = 100;
const longestName = 317;
/** Whoever registers more often than that is out of order, and costs others their turn. */
const registrationsPerSecond = 0.2;
const registrationsAtOnce = 10;
/** After each list, so that those of one plugin take a small part of our time, however many it sends. */
const restMs = 1;
const devicesPerRestMs = 100;
/** Lists that are acted on: each may cost a write to disk, a status of the Node, a look at every pod that waits. */
const listsPerSecond = 2;
const listsAtOnce = 10;
const optionsWithinMs = 10_000;
const retryMs = 250;

interface RegisteredPlugin {
  readonly client: DevicePluginClient;
  readonly options: DevicePluginOptions;
  readonly life: LinkedSignal;
}

/** Of lists that come too fast only the newest is told, and never later than it would be its turn. */
class NewestList implements Disposable {
  readonly #pace: TokenBucket;
  readonly #clock: Clock;
  readonly #tell: (devices: readonly ListedDevice[]) => void;
  #held: { devices: readonly ListedDevice[]; readonly due: Timer } | undefined;

  constructor(pace: TokenBucket, clock: Clock, tell: (devices: readonly ListedDevice[]) => void) {
    this.#pace = pace;
    this.#clock = clock;
    this.#tell = tell;
  }

  put(devices: readonly ListedDevice[]): void {
    if (this.#held !== undefined) this.#held.devices = devices;
    else if (this.#pace.tryTake()) this.#tell(devices);
    else this.#held = { devices, due: this.#clock.after(1_000 / listsPerSecond, () => this.#release()) };
  }

  #release(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) this.put(held.devices);
  }

  [Symbol.dispose](): void {
    this.#held?.due.cancel();
  }
}

/**
 * The device plugins that are registered, the newest of each resource. One that was replaced is not listened to any
 * more, and its end means nothing.
 */
export class DevicePlugins implements PluginHandler {
  /** The plugin of the resource can be asked now, and will list what it has. */
  readonly registered = new Topic<[resource: string]>();
  readonly listed = new Topic<[resource: string, devices: readonly ListedDevice[]]>();
  /** Nobody offers the resource any more. */
  readonly lost = new Topic<[resource: string]>();
  readonly #ports: DevicePluginPorts;
  readonly #current = new Map<string, RegisteredPlugin>();
  /** Left alone, since a plugin that is cut off may register again, and again; only the last of each resource. */
  readonly #replaced = new Map<string, RegisteredPlugin>();
  readonly #pace = new Map<string, TokenBucket>();
  readonly #turns = new SerialByKey<string>();

  constructor(ports: DevicePluginPorts) {
    this.#ports = ports;
  }

  /** Undefined: none is registered, or it has left. */
  of(resource: string): Pick<RegisteredPlugin, "client" | "options"> | undefined {
    return this.#current.get(resource);
  }

  /** A plugin found by its socket in the registration directory. */
  async register({ name, endpoint, versions }: Plugin, signal: AbortSignal): Promise<void> {
    if (!versions.includes(devicePluginVersion)) {
      const found = `[${versions.slice(0, 10).join(" ")}]`;
      throw new Error(`manager version, ${devicePluginVersion}, is not among plugin supported versions ${found}`);
    }
    if (!this.#isName(name)) {
      throw new Error(`invalid name of device plugin socket: the ResourceName ${goQuote(name)} is invalid`);
    }
    await this.connect(name, endpoint, signal);
  }

  async deregister({ name, endpoint }: Plugin): Promise<void> {
    const present = this.#current.get(name);
    if (present?.client.socketPath === endpoint) this.#end(name, present, new Error("its socket is gone"));
  }

  /** Throws where it could not be asked; what it had registered before stays then. */
  async connect(resource: string, socketPath: string, signal: AbortSignal): Promise<void> {
    if (!this.#isName(resource)) throw new Error(`the ResourceName ${goQuote(resource)} is invalid`);
    if (!this.#bucket(resource).tryTake()) {
      throw new GrpcError("ResourceExhausted", "registered too often; wait a few seconds and try again");
    }
    await this.#turns.run(resource, () => this.#connect(resource, socketPath, signal));
  }

  async #connect(resource: string, socketPath: string, signal: AbortSignal): Promise<void> {
    const { scope, clock, log } = this.#ports;
    const client = new DevicePluginClient(socketPath, clock);
    const options = await this.#options(client, signal);
    const plugin = { client, options, life: new LinkedSignal(scope.signal) };
    const before = this.#current.get(resource);
    if (before !== undefined) {
      this.#replaced.get(resource)?.life.abort(new Error("replaced twice"));
      this.#replaced.set(resource, before);
    }
    this.#current.set(resource, plugin);
    log.info("Device plugin registered", { resource, socket: socketPath, ...options });
    this.registered.tell(resource);
    scope.spawn(`devices ${resource}`, () => this.#follow(resource, plugin));
  }

  /** Its server may need a moment after it has said that it is there. */
  async #options(client: DevicePluginClient, signal: AbortSignal): Promise<DevicePluginOptions> {
    const { clock } = this.#ports;
    const until = clock.monotonic() + optionsWithinMs;
    for (;;) {
      try {
        return await client.options(signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        if (clock.monotonic() + retryMs > until) {
          throw new Error(`failed to get device plugin options: ${messageOf(error)}`, { cause: error });
        }
        await clock.sleep(retryMs, signal);
      }
    }
  }

  async #follow(resource: string, plugin: RegisteredPlugin): Promise<void> {
    const { signal } = plugin.life;
    const { clock } = this.#ports;
    const tell = (devices: readonly ListedDevice[]): void => {
      if (this.#current.get(resource) === plugin) this.listed.tell(resource, devices);
    };
    using newest = new NewestList(new TokenBucket(listsPerSecond, listsAtOnce, clock), clock, tell);
    try {
      for await (const devices of plugin.client.lists(signal)) {
        newest.put(devices);
        await clock.sleep(restMs + devices.length / devicesPerRestMs, signal);
      }
      this.#end(resource, plugin, new Error("it ended its list"));
    } catch (error) {
      this.#end(resource, plugin, error);
    }
  }

  #end(resource: string, plugin: RegisteredPlugin, why: unknown): void {
    const { log, scope } = this.#ports;
    plugin.life.abort(why);
    plugin.life[Symbol.dispose]();
    if (this.#replaced.get(resource) === plugin) this.#replaced.delete(resource);
    if (this.#current.get(resource) !== plugin) return;
    this.#current.delete(resource);
    if (scope.signal.aborted) return;
    log.warn("A device plugin has left", { resource, why: messageOf(why).slice(0, 1_000) });
    this.lost.tell(resource);
  }

  #isName(name: string): boolean {
    return name.length <= longestName && isExtended(name);
  }

  #bucket(resource: string): TokenBucket {
    let bucket = this.#pace.get(resource);
    if (bucket === undefined) {
      if (this.#pace.size >= mostResources) {
        throw new GrpcError("ResourceExhausted", `plugins offer more than ${mostResources} resources`);
      }
      bucket = new TokenBucket(registrationsPerSecond, registrationsAtOnce, this.#ports.clock);
      this.#pace.set(resource, bucket);
    }
    return bucket;
  }
}
