import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type Clock,
  FairLimiter,
  hasCode,
  ifThere,
  type Logger,
  messageOf,
  ProgramError,
  runToEnd,
  withDeadline,
} from "../../../ground/base/index.ts";
import { type Fields, fieldsOf, textIn } from "../engine/index.ts";
import { chooseNetwork, findPlugin, type NetworkList } from "./conf.ts";
import {
  addressesIn,
  type CniCommand,
  complaintIn,
  type PodOfNetwork,
  pluginEnvironment,
  pluginInput,
} from "./plugin-call.ts";

export interface CniSettings {
  readonly confDir: string;
  readonly binDirs: readonly string[];
  /** Where it is noted which sandbox has which network. */
  readonly stateDir: string;
}

export interface CniPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** CNI could not do what was asked. */
class NetworkError extends Error {
  override readonly name = "NetworkError";
}

/** What was done for a sandbox; kept on disk, for what is taken away must be what was given. */
interface NetworkNote {
  readonly list: NetworkList;
  readonly capabilities: Readonly<Record<string, unknown>>;
  readonly netns: string;
  /** Undefined while the plugins are at it. */
  readonly result?: unknown;
}

const operationWithinMs = 220_000;
const longestAnswer = 1024 * 1024;
/** Plugins of pods that run at the same time; of one pod, one. */
const podsAtOnce = 16;
/** Plugins that hang for some pods do not work: nobody has to wait for their end. */
const patienceMs = 20_000;

/** Pod networks by CNI plugins, which the shim calls itself. */
export class CniNetwork {
  readonly #settings: CniSettings;
  readonly #ports: CniPorts;
  readonly #turns: FairLimiter<string>;
  readonly #notes = new Map<string, NetworkNote>();
  #network: NetworkList | undefined;

  constructor(settings: CniSettings, ports: CniPorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#turns = new FairLimiter(ports.clock, { limit: podsAtOnce, share: 1, patienceMs });
  }

  /** What keeps pods from getting a network; undefined: nothing. */
  async problem(): Promise<string | undefined> {
    return (await this.#current()) === undefined ? "cni config uninitialized" : undefined;
  }

  /** Gives the sandbox its network; resolves with the pod's addresses. */
  async setUp(
    pod: PodOfNetwork,
    netns: string,
    capabilities: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    return await this.#inTurn(pod, signal, async (bounded) => {
      const list = await this.#current();
      if (list === undefined) throw new NetworkError("cni config uninitialized");
      await this.#keep(pod.sandboxId, { list, capabilities, netns });
      let result: unknown;
      for (const plugin of list.plugins) {
        result = await this.#run(
          "ADD",
          pod,
          netns,
          list,
          plugin,
          pluginInput(list, plugin, capabilities, result),
          bounded,
        );
      }
      // A pod without an address would be made anew for ever, and nobody would know why.
      if (addressesIn(result).length === 0) throw new NetworkError(`network "${list.name}" gave the pod no address`);
      await this.#keep(pod.sandboxId, { list, capabilities, netns, result });
      return addressesIn(result);
    });
  }

  /**
   * Takes the network away; without a name space, what the plugins keep elsewhere. May be repeated. `known`: what the
   * network was given for where no note is left of it.
   */
  async tearDown(
    pod: PodOfNetwork,
    netns: string | undefined,
    known: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#inTurn(pod, signal, async (bounded) => {
      const note = await this.#note(pod.sandboxId);
      const list = note?.list ?? (await this.#current());
      if (list === undefined) return;
      for (const plugin of list.plugins.toReversed()) {
        const input = pluginInput(list, plugin, note?.capabilities ?? known, note?.result);
        await this.#run("DEL", pod, netns ?? "", list, plugin, input, bounded).catch(ignoreAbsent);
      }
      this.#notes.delete(pod.sandboxId);
      await rm(this.#path(pod.sandboxId), { force: true });
    });
  }

  /** The addresses that a sandbox was given; undefined: it has no network, or not yet. */
  async addressesOf(sandboxId: string): Promise<readonly string[] | undefined> {
    const note = await this.#note(sandboxId);
    return note?.result === undefined ? undefined : addressesIn(note.result);
  }

  /** A sandbox that was started anew by somebody else has a namespace in which nothing is: it lost its network. */
  async seen(sandboxId: string, netns: string): Promise<void> {
    const note = await this.#note(sandboxId);
    if (note?.result === undefined || note.netns === netns) return;
    const { result: _, ...lost } = note;
    await this.#keep(sandboxId, lost);
  }

  async #inTurn<Result>(
    { pod, namespace }: PodOfNetwork,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const late = (): Error => new NetworkError(`did not answer within ${operationWithinMs / 1000} s`);
    const bounded = () => withDeadline(this.#ports.clock, operationWithinMs, late, signal, work);
    return await this.#turns.run(`${pod}_${namespace}`, bounded, signal);
  }

  async #run(
    command: CniCommand,
    pod: PodOfNetwork,
    netns: string,
    list: NetworkList,
    plugin: Fields,
    input: object,
    signal: AbortSignal,
  ): Promise<unknown> {
    const { binDirs } = this.#settings;
    const type = textIn(plugin, "type");
    const program = await findPlugin(type, binDirs);
    if (program === undefined) throw new NetworkError(`failed to find plugin "${type}" in path [${binDirs.join(" ")}]`);
    const path = this.#ports.env["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin";
    const env = { PATH: path, ...pluginEnvironment(command, pod, netns, binDirs) };
    let stdout: string;
    try {
      stdout = await runToEnd(
        { program, args: [], env, input: JSON.stringify(input), longestAnswer, withChildren: true },
        signal,
      );
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ProgramError)) throw error;
      const complaint = complaintIn(error.stdout, error.message);
      throw new NetworkError(
        `plugin type="${type}" name="${list.name}" failed (${command === "ADD" ? "add" : "delete"}): ${complaint}`,
      );
    }
    if (command === "DEL") return undefined;
    try {
      return JSON.parse(stdout);
    } catch (error) {
      throw new NetworkError(`plugin type="${type}" answered with what is no JSON: ${messageOf(error)}`);
    }
  }

  /** The network of the configuration directory as it is now. One that breaks later leaves what was there before. */
  async #current(): Promise<NetworkList | undefined> {
    const found = await chooseNetwork(this.#settings.confDir, this.#settings.binDirs);
    if (!("problem" in found)) this.#network = found;
    else if (this.#network === undefined) this.#ports.log.debug(2, "no usable CNI configuration", found);
    return this.#network;
  }

  #path(sandboxId: string): string {
    return join(this.#settings.stateDir, `${sandboxId}.json`);
  }

  /**
   * Whole or not at all, but not forced to the disk: after a loss of power there is no such network any more, and the
   * sandbox's checkpoint still leads to what plugins keep in files.
   */
  async #keep(sandboxId: string, note: NetworkNote): Promise<void> {
    const unfinished = join(this.#settings.stateDir, `.${sandboxId}`);
    await writeFile(unfinished, JSON.stringify(note), { mode: 0o600 });
    await rename(unfinished, this.#path(sandboxId));
    this.#notes.set(sandboxId, note);
  }

  async #note(sandboxId: string): Promise<NetworkNote | undefined> {
    const known = this.#notes.get(sandboxId);
    if (known !== undefined) return known;
    if (!/^[0-9a-f]{64}$/.test(sandboxId)) return undefined;
    const note = noteIn((await ifThere(readFile(this.#path(sandboxId), "utf8"))) ?? "");
    if (note !== undefined) this.#notes.set(sandboxId, note);
    return note;
  }
}

/** Undefined for a file that a crash has left half written. */
function noteIn(content: string): NetworkNote | undefined {
  try {
    const fields = fieldsOf(JSON.parse(content));
    const list = fieldsOf(fields["list"]);
    const plugins = list["plugins"];
    if (!Array.isArray(plugins)) return undefined;
    return {
      list: { name: textIn(list, "name"), cniVersion: textIn(list, "cniVersion"), plugins: plugins.map(fieldsOf) },
      capabilities: fieldsOf(fields["capabilities"]),
      netns: textIn(fields, "netns"),
      ...(fields["result"] !== undefined && { result: fields["result"] }),
    };
  } catch {
    return undefined;
  }
}

/** What is to be taken away may be gone already. */
function ignoreAbsent(error: unknown): void {
  const isGone = error instanceof NetworkError && error.message.includes("no such file or directory");
  if (!isGone && !hasCode(error, "ENOENT")) throw error;
}
