import { type FSWatcher, watch } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  type Clock,
  ifThere,
  type Logger,
  messageOf,
  Pause,
  SerialByKey,
  unlessAborted,
} from "../../../ground/base/index.ts";
import type { DriverCapabilities } from "./driver-answer.ts";
import type { FlexCalls } from "./flex-calls.ts";

/** A driver as it is installed now. */
export interface FlexDriver {
  /** `vendor/driver`. */
  readonly name: string;
  /** The name of its directory, `vendor~driver`. */
  readonly directory: string;
  readonly program: string;
  /** Another one when the program was replaced. */
  readonly stamp: string;
}

/** What this very program has told of itself. */
export interface KnownDriver extends FlexDriver {
  readonly capabilities: DriverCapabilities;
  /** Commands that it has said not to support. */
  readonly unsupported: Set<string>;
}

export interface FlexDriversPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** The setting volumePluginDir. */
  readonly directory: string;
  readonly calls: FlexCalls;
  /** Drivers came, went or were replaced: what waits for one may try again. */
  readonly onChange: () => void;
}

// The kernel tells of changes; this heals a notice that got lost, and sees what lies behind a link.
const checkMs = 60_000;
// A driver is copied in pieces.
const settleMs = 100;
const mostDrivers = 1_000;

/** The drivers in a directory, each `vendor~driver/driver`: found, watched, and asked once what they can do. */
export class FlexDrivers {
  readonly #ports: FlexDriversPorts;
  readonly #pause: Pause;
  readonly #turns = new SerialByKey<string>();
  readonly #watched = new Map<string, Watched>();
  readonly #known = new Map<string, KnownDriver>();
  #installed: ReadonlyMap<string, FlexDriver> = new Map();
  #hasNews = false;

  constructor(ports: FlexDriversPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  get directory(): string {
    return this.#ports.directory;
  }

  find(name: string): FlexDriver | undefined {
    return this.#installed.get(name);
  }

  names(): readonly string[] {
    return [...this.#installed.keys()];
  }

  /** What the driver said when it was asked last; undefined when it, as it is now, never was. */
  known(name: string): KnownDriver | undefined {
    const driver = this.#installed.get(name);
    const known = this.#known.get(name);
    return driver !== undefined && known?.stamp === driver.stamp ? known : undefined;
  }

  /** Asks a driver that is new, or was replaced, what it can do. */
  async ready(driver: FlexDriver, progress: (text: string) => void, signal: AbortSignal): Promise<KnownDriver> {
    const turn = this.#turns.run(driver.name, async () => {
      signal.throwIfAborted();
      const known = this.known(driver.name);
      if (known !== undefined) return known;
      // It may have been replaced again while others had their turn.
      const present = this.find(driver.name) ?? driver;
      const { name, program, directory } = present;
      const answer = await this.#ports.calls.call(
        { driver: name, program, command: "init", args: [], progress },
        signal,
      );
      if (answer.status !== "Success") {
        const reason = answer.status === "Failure" ? answer.message : answer.status;
        throw new Error(`error creating Flexvolume plugin from directory ${directory}, skipping. Error: ${reason}`);
      }
      const asked = { ...present, capabilities: answer.capabilities, unsupported: new Set<string>() };
      this.#known.set(name, asked);
      return asked;
    });
    return await unlessAborted(turn, signal);
  }

  /** Looks and watches until it is told to stop. */
  async run(signal: AbortSignal): Promise<never> {
    try {
      for (;;) {
        await this.look();
        if (this.#hasNews) await this.#ports.clock.sleep(settleMs, signal);
        else await this.#pause.wait(checkMs, signal);
      }
    } finally {
      for (const { watcher } of this.#watched.values()) watcher.close();
      this.#watched.clear();
    }
  }

  async look(): Promise<void> {
    const { log, onChange, directory } = this.#ports;
    this.#hasNews = false;
    try {
      const installed = await this.#find();
      const before = this.#installed;
      this.#installed = installed;
      for (const name of this.#known.keys()) if (!installed.has(name)) this.#known.delete(name);
      const isSame =
        installed.size === before.size && [...installed].every(([k, d]) => before.get(k)?.stamp === d.stamp);
      if (isSame) return;
      log.info("FlexVolume drivers have changed", { directory, drivers: [...installed.keys()] });
      onChange();
    } catch (error) {
      log.warn("Cannot look for FlexVolume drivers", { directory, reason: messageOf(error) });
    }
  }

  async #find(): Promise<ReadonlyMap<string, FlexDriver>> {
    const { directory } = this.#ports;
    const watched = new Set([await this.#watchNearest(directory)]);
    const entries = await ifThere(readdir(directory, { withFileTypes: true }), []);
    const directories = entries.filter((entry) => entry.isDirectory() && isDriverName(entry.name));
    const found = new Map<string, FlexDriver>();
    for (const { name } of directories.slice(0, mostDrivers)) {
      const path = join(directory, name);
      await this.#watch(path);
      watched.add(path);
      const driver = await driverIn(directory, name);
      if (driver !== undefined) found.set(driver.name, driver);
    }
    for (const path of this.#watched.keys()) if (!watched.has(path)) this.#unwatch(path);
    return found;
  }

  /** While the directory is not there, what tells of its coming is the one that it will be made in. */
  async #watchNearest(directory: string): Promise<string> {
    let path = directory;
    while (!(await this.#watch(path)) && path !== dirname(path)) path = dirname(path);
    return path;
  }

  /** The watch must stand before the look: what changes in between is then noticed. False: it can't be watched. */
  async #watch(path: string): Promise<boolean> {
    const identity = await identityOf(path);
    const present = this.#watched.get(path);
    if (present !== undefined && present.identity === identity) return true;
    // Another one under the same name: the kernel still watches the one that is gone.
    this.#unwatch(path);
    if (identity === undefined) return false;
    const changed = (): void => {
      this.#hasNews = true;
      this.#pause.cutShort();
    };
    try {
      const watcher = watch(path, { persistent: true }, changed);
      watcher.on("error", () => {
        if (this.#watched.get(path)?.watcher === watcher) this.#unwatch(path);
        changed();
      });
      this.#watched.set(path, { watcher, identity });
      return true;
    } catch {
      return false;
    }
  }

  #unwatch(path: string): void {
    this.#watched.get(path)?.watcher.close();
    this.#watched.delete(path);
  }
}

interface Watched {
  readonly watcher: FSWatcher;
  readonly identity: string;
}

async function identityOf(path: string): Promise<string | undefined> {
  const found = await ifThere(stat(path, { bigint: true }));
  return found?.isDirectory() ? `${found.dev}:${found.ino}` : undefined;
}

/** `vendor~driver`; one whose name would lead elsewhere on disk is none. */
function isDriverName(directory: string): boolean {
  return directory.split("~").every((part) => part !== "" && !part.startsWith("."));
}

async function driverIn(pluginDir: string, directory: string): Promise<FlexDriver | undefined> {
  const program = join(pluginDir, directory, directory.split("~").at(-1) ?? "");
  const found = await ifThere(stat(program, { bigint: true })).catch(() => undefined);
  if (found === undefined || !found.isFile() || (found.mode & 0o111n) === 0n) return undefined;
  const stamp = `${found.ino}:${found.mtimeNs}:${found.ctimeNs}:${found.size}`;
  return { name: directory.replaceAll("~", "/"), directory, program, stamp };
}
