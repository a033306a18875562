import {
  type Clock,
  explain,
  isAbort,
  KeyedWorkers,
  type Logger,
  Pause,
  TaskScope,
  type Timer,
} from "../../ground/base/index.ts";
import { RegistrationDefinition } from "./gen/registration.ts";
import { callPlugin } from "./rpc.ts";
import { type FoundSocket, SocketWatch } from "./socket-watch.ts";

export interface Plugin {
  readonly type: string;
  readonly name: string;
  /** The socket that serves the plugin's own API. */
  readonly endpoint: string;
  readonly versions: readonly string[];
}

/** What to do with plugins of one type. */
export interface PluginHandler {
  /** Throws when the plugin can't be used; the plugin is told why. */
  register(plugin: Plugin, signal: AbortSignal): Promise<void>;
  deregister(plugin: Plugin, signal: AbortSignal): Promise<void>;
}

export interface PluginRegistrationPorts {
  /** `<root>/plugins_registry`. */
  readonly directory: string;
  /** By type: CSIPlugin, DevicePlugin, DRAPlugin. */
  readonly handlers: ReadonlyMap<string, PluginHandler>;
  readonly clock: Clock;
  readonly log: Logger;
}

const infoMs = 1_000;
const connectMs = 10_000;
const notifyMs = 5_000;
const firstRetryMs = 500;
const longestRetryMs = 122_000;

/**
 * Plugins announce themselves by a socket in a directory, and leave by removing it. Each socket is asked who it is;
 * one that was made anew is another plugin, even under the same name.
 */
export class PluginRegistration {
  readonly #ports: PluginRegistrationPorts;
  readonly #known = new Map<string, KnownSocket>();
  readonly #pause: Pause;

  constructor(ports: PluginRegistrationPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** Plugins that are registered now. */
  get plugins(): readonly Plugin[] {
    return [...this.#known.values()].flatMap(({ plugin }) => plugin ?? []);
  }

  async run(signal: AbortSignal): Promise<void> {
    await using scope = new TaskScope(signal);
    const workers: KeyedWorkers<string> = new KeyedWorkers(scope, (path, taskSignal) =>
      this.#settle(path, workers, taskSignal),
    );
    const watch = new SocketWatch(this.#ports.directory, () => this.#pause.cutShort());
    try {
      while (!signal.aborted) {
        const { found, nextLookMs } = await watch.look();
        this.#compare(found, workers);
        if (watch.hasNews) continue;
        await this.#pause.wait(nextLookMs, signal);
      }
    } finally {
      watch.close();
    }
  }

  #compare(found: ReadonlyMap<string, FoundSocket>, workers: KeyedWorkers<string>): void {
    for (const [path, { identity }] of found) {
      const known = this.#known.get(path);
      if (known?.wanted === identity) continue;
      if (known === undefined) this.#known.set(path, { wanted: identity, failures: 0 });
      else Object.assign(known, { wanted: identity, failures: 0 });
      workers.wake(path);
    }
    for (const [path, known] of this.#known) {
      if (found.has(path) || known.wanted === undefined) continue;
      known.wanted = undefined;
      workers.wake(path);
    }
  }

  /** Brings what is registered in line with the socket that is there now, or is not. */
  async #settle(path: string, workers: KeyedWorkers<string>, signal: AbortSignal): Promise<void> {
    const known = this.#known.get(path);
    if (known === undefined || (known.wanted !== undefined && known.registered === known.wanted)) return;
    const { log, clock } = this.#ports;
    try {
      await this.#drop(known, path, signal);
      if (known.wanted === undefined) {
        known.retry?.cancel();
        if (this.#known.get(path) === known) this.#known.delete(path);
        return;
      }
      const identity = known.wanted;
      const { type, name } = await this.#introduce(path, known, signal);
      known.registered = identity;
      known.failures = 0;
      known.problem = undefined;
      log.info("Plugin registered", { socket: path, type, name });
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const retryMs = Math.min(firstRetryMs * 2 ** known.failures++, longestRetryMs);
      // A driver that has died may leave its socket for days.
      const problem = explain(error);
      const said = "A plugin could not be registered";
      if (problem === known.problem) log.debug(4, said, { socket: path, retryMs, err: problem });
      else log.error(said, error, { socket: path, retryMs });
      known.problem = problem;
      known.retry?.cancel();
      known.retry = clock.after(retryMs, () => workers.wake(path));
    }
  }

  async #drop(known: KnownSocket, path: string, signal: AbortSignal): Promise<void> {
    const { plugin } = known;
    if (plugin === undefined) return;
    await this.#ports.handlers.get(plugin.type)?.deregister(plugin, signal);
    known.plugin = undefined;
    known.registered = undefined;
    this.#ports.log.info("Plugin left", { socket: path, type: plugin.type, name: plugin.name });
  }

  async #introduce(path: string, known: KnownSocket, signal: AbortSignal): Promise<Plugin> {
    const info = await this.#call(path, "getInfo", {}, connectMs + infoMs, signal);
    const { type, name, supportedVersions: versions } = info;
    const plugin = { type, name, endpoint: info.endpoint === "" ? path : info.endpoint, versions };
    const handler = this.#ports.handlers.get(type);
    try {
      if (handler === undefined) throw new Error(`no handler registered for plugin type: ${type} at socket ${path}`);
      await handler.register(plugin, signal);
      // From here on it must be deregistered, even if it never hears that it was accepted.
      known.plugin = plugin;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const status = { pluginRegistered: false, error: explain(error) };
      await this.#call(path, "notifyRegistrationStatus", status, notifyMs, signal);
      throw error;
    }
    await this.#call(path, "notifyRegistrationStatus", { pluginRegistered: true, error: "" }, notifyMs, signal);
    return plugin;
  }

  #call<Name extends keyof typeof RegistrationDefinition.methods>(
    path: string,
    name: Name,
    request: Parameters<(typeof RegistrationDefinition.methods)[Name]["requestType"]["encode"]>[0],
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<ReturnType<(typeof RegistrationDefinition.methods)[Name]["responseType"]["decode"]>> {
    const { fullName, methods } = RegistrationDefinition;
    const options = { deadline: this.#ports.clock.now() + timeoutMs, signal };
    return callPlugin(path, fullName, methods[name], request as never, options) as never;
  }
}

interface KnownSocket {
  /** The socket that is there now; undefined when it is gone. */
  wanted: string | undefined;
  /** The socket whose plugin is registered. */
  registered?: string | undefined;
  plugin?: Plugin | undefined;
  failures: number;
  /** Why it failed the last time. */
  problem?: string | undefined;
  /** One for each socket, however often it is made anew. */
  retry?: Timer;
}
