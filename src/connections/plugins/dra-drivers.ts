import {
  type Clock,
  goQuote,
  Limiter,
  LinkedSignal,
  type Logger,
  onAbort,
  type TaskScope,
  Topic,
} from "../../ground/base/index.ts";
import {
  type ClaimAnswer,
  type ClaimRef,
  DraClient,
  type DraService,
  draServices,
  type ReportedHealth,
} from "./dra-client.ts";
import type { Plugin, PluginHandler } from "./registration.ts";

export interface DraDriversPorts {
  readonly scope: TaskScope;
  readonly clock: Clock;
  readonly log: Logger;
  /** Whether drivers are asked how their devices are. */
  readonly followsHealth: boolean;
}

/** No plugin of this driver is registered. One may come (back) any time. */
export class DraDriverMissing extends Error {
  override readonly name = "DraDriverMissing";
  readonly driver: string;

  constructor(driver: string) {
    super(`DRA driver ${driver} is not registered`);
    this.driver = driver;
  }
}

/** A driver as it can be asked now. */
export interface DraDriver {
  prepare(claims: readonly ClaimRef[], signal: AbortSignal): Promise<ReadonlyMap<string, ClaimAnswer>>;
  unprepare(claims: readonly ClaimRef[], signal: AbortSignal): Promise<ReadonlyMap<string, ClaimAnswer>>;
}

/** A machine has a handful of drivers; while one is replaced it has two plugins. */
export const mostDraDrivers = 100;
const mostPlugins = 10;
const longestName = 63;
/** The name becomes part of a selector, so that it must be one and nothing else. */
const namePattern = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** Calls to one driver at a time; the others wait for their turn, and with them only its own pods. */
const callsAtOnce = 8;
const healthRetryMs = 5_000;
/** After each message about health, so that those of one plugin take a small part of our time. */
const restMs = 10;
const devicesPerRestMs = 100;

interface DraPlugin {
  readonly client: DraClient;
  readonly life: LinkedSignal;
  isThere: boolean;
}

/** The DRA drivers that are registered. A driver may have several plugins, of which the newest that is there is asked. */
export class DraDrivers implements PluginHandler {
  /** The driver can be asked now. */
  readonly registered = new Topic<[driver: string]>();
  /** Whether any plugin of the driver is connected has changed. */
  readonly presence = new Topic<[driver: string, isThere: boolean]>();
  readonly health = new Topic<[driver: string, devices: readonly ReportedHealth[]]>();
  /** What the driver said of its devices says nothing any more. */
  readonly healthLost = new Topic<[driver: string]>();
  readonly #ports: DraDriversPorts;
  /** Oldest first. */
  readonly #drivers = new Map<string, DraPlugin[]>();
  readonly #turns = new Map<string, Limiter>();

  constructor(ports: DraDriversPorts) {
    this.#ports = ports;
  }

  names(): readonly string[] {
    return [...this.#drivers.keys()].sort();
  }

  isRegistered(driver: string): boolean {
    return this.#drivers.has(driver);
  }

  /** Throws DraDriverMissing. */
  of(driver: string): DraDriver {
    const { client } = this.#chosen(driver);
    const turns = this.#turnsOf(driver);
    return {
      prepare: (claims, signal) => turns.run(() => client.prepare(claims, signal), signal),
      unprepare: (claims, signal) => turns.run(() => client.unprepare(claims, signal), signal),
    };
  }

  async register({ name, endpoint, versions }: Plugin): Promise<void> {
    if (name.length > longestName || !namePattern.test(name)) {
      throw new Error(`DRA driver name ${goQuote(name.slice(0, 2 * longestName))} is no DNS name of at most 63 bytes`);
    }
    const service = serviceIn(versions, `DRA driver plugin ${name} at endpoint ${endpoint}`);
    const plugins = this.#drivers.get(name) ?? [];
    if (plugins.some(({ client }) => client.endpoint === endpoint)) {
      throw new Error(`endpoint ${endpoint} already registered for DRA driver plugin ${name}`);
    }
    if (!this.#drivers.has(name) && this.#drivers.size >= mostDraDrivers) {
      throw new Error(`more than ${mostDraDrivers} DRA drivers are registered`);
    }
    if (plugins.length >= mostPlugins) throw new Error(`DRA driver ${name} has more than ${mostPlugins} plugins`);
    const plugin = this.#connect(name, new DraClient(endpoint, service, this.#ports.clock));
    this.#drivers.set(name, [...plugins, plugin]);
    this.registered.tell(name);
    this.#followHealth(name, plugin);
  }

  async deregister({ name, endpoint }: Plugin): Promise<void> {
    const plugins = this.#drivers.get(name) ?? [];
    const left = plugins.filter(({ client }) => client.endpoint !== endpoint);
    if (left.length === plugins.length) return;
    if (left.length > 0) this.#drivers.set(name, left);
    else this.#drivers.delete(name);
    for (const plugin of plugins) {
      if (left.includes(plugin)) continue;
      plugin.life.abort(new Error("the plugin has left"));
      plugin.life[Symbol.dispose]();
    }
    this.presence.tell(name, this.#isThere(name));
  }

  #connect(driver: string, client: DraClient): DraPlugin {
    const plugin: DraPlugin = { client, life: new LinkedSignal(this.#ports.scope.signal), isThere: false };
    const { signal } = plugin.life;
    const presence = client.watchPresence((isThere) => {
      plugin.isThere = isThere;
      if (!signal.aborted) this.presence.tell(driver, this.#isThere(driver));
    });
    onAbort(signal, () => presence[Symbol.dispose]());
    return plugin;
  }

  #isThere(driver: string): boolean {
    return this.#drivers.get(driver)?.some(({ isThere }) => isThere) ?? false;
  }

  #chosen(driver: string): DraPlugin {
    const plugins = this.#drivers.get(driver) ?? [];
    const chosen = plugins.findLast(({ isThere }) => isThere) ?? plugins.at(-1);
    if (chosen === undefined) throw new DraDriverMissing(driver);
    return chosen;
  }

  #turnsOf(driver: string): Limiter {
    let turns = this.#turns.get(driver);
    if (turns === undefined) {
      turns = new Limiter(callsAtOnce);
      // Drivers that are gone leave theirs behind; there are not many names.
      if (this.#turns.size > 2 * mostDraDrivers) this.#turns.clear();
      this.#turns.set(driver, turns);
    }
    return turns;
  }

  #followHealth(driver: string, { client, life }: DraPlugin): void {
    const { scope, clock, log, followsHealth } = this.#ports;
    if (!followsHealth) return;
    const { signal } = life;
    scope.spawn(`health of ${driver}`, async () => {
      while (!signal.aborted) {
        try {
          for await (const devices of client.health(signal)) {
            this.health.tell(driver, devices);
            await clock.sleep(restMs + devices.length / devicesPerRestMs, signal);
          }
        } catch (error) {
          log.debug(4, "A DRA driver does not say how its devices are", { driver, err: error });
        }
        this.healthLost.tell(driver);
        await clock.sleep(healthRetryMs, signal).catch(() => undefined);
      }
    });
  }
}

/** The first in the plugin's order that we speak. */
function serviceIn(versions: readonly string[], plugin: string): DraService {
  const problem = `invalid supported gRPC versions of ${plugin}`;
  if (versions.length === 0) {
    throw new Error(`${problem}: empty list of supported gRPC services (aka supported versions)`);
  }
  const found = versions.map((version) => draServices.find((known) => known === version)).find((known) => known);
  if (found !== undefined) return found;
  const quoted = (names: readonly string[]): string => `[${names.map((name) => goQuote(name)).join(" ")}]`;
  const offered = quoted(versions.slice(0, 10));
  throw new Error(
    `${problem}: none of services supported by the plugin (${offered}) are supported by the kubelet (${quoted(draServices)})`,
  );
}
