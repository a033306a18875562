import { type Clock, explain, isAbort, type Logger, messageOf, Pause } from "../../ground/base/index.ts";
import type { ConfigMap, Node } from "../../ground/model/index.ts";
import type { ConfigKeeper } from "./config-keeper.ts";
import { ConfigMapFiles, configMapVersion, hasFileNames } from "./config-map-files.ts";
import type { AssignedVersion } from "./state.ts";
import type { StoreDisk } from "./store.ts";
import type { ConfigMapSource, ConfigVersion } from "./version.ts";

export interface ConfigMapRef {
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
}

/** The API server, as far as the configuration comes from it. */
export interface ConfigApi {
  /** Of this node; undefined while it is not known. */
  readonly node: () => Node | undefined;
  readonly onNode: (listener: () => void) => () => void;
  readonly get: (ref: ConfigMapRef, signal: AbortSignal) => Promise<ConfigMap>;
  /** Tells of changes, where the node may watch; it may read without that. */
  readonly watch: (ref: ConfigMapRef, onChange: () => void) => Disposable;
}

export interface AssignedConfigPorts {
  readonly api: ConfigApi;
  readonly keeper: Pick<ConfigKeeper, "proposeAssigned" | "unassign" | "syncFailed" | "report">;
  readonly disk: StoreDisk;
  /** That of --dynamic-config-dir. */
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
}

const defaultKey = "kubelet";
/** A node of kubeadm may read its config map, not watch it. */
const readEveryMs = 60_000;
/** Others may write to the Node and to the config map all the time, and each notice means that it is read and saved. */
const restMs = 1_000;
const noSource = "failed to sync: invalid NodeConfigSource, exactly one subfield must be non-nil, but all were nil";

/** What --dynamic-config-map names; the rules have checked its form. */
export function configMapRefOf(flag: string): ConfigMapRef | undefined {
  const [namespace = "", name = "", key = defaultKey] = flag.split("/");
  return flag === "" ? undefined : { namespace, name, key };
}

type Wish =
  | { readonly kind: "unknown" }
  | { readonly kind: "none" }
  | { readonly kind: "broken" }
  | { readonly kind: "configMap"; readonly ref: ConfigMapRef; readonly by: AssignedVersion["by"] };

/** Follows the config map that the command line names, or else the one that the Node names. */
export class AssignedConfig {
  readonly #flag: ConfigMapRef | undefined;
  readonly #ports: AssignedConfigPorts;
  readonly #pause: Pause;
  readonly #mapFiles: ConfigMapFiles;
  #watched: { readonly key: string; readonly watch: Disposable } | undefined;
  #isTold = false;

  constructor(flag: ConfigMapRef | undefined, ports: AssignedConfigPorts) {
    this.#flag = flag;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
    this.#mapFiles = new ConfigMapFiles(ports.directory, ports.disk);
  }

  async run(signal: AbortSignal): Promise<void> {
    const { api, clock, log, random, keeper } = this.#ports;
    const tell = (): void => {
      this.#isTold = true;
      this.#pause.cutShort();
    };
    const stop = api.onNode(tell);
    try {
      while (!signal.aborted) {
        this.#isTold = false;
        try {
          await this.#sync(tell, signal);
        } catch (error) {
          if (isAbort(error, signal)) throw error;
          log.error("The configuration from the API server can't be used", error);
          keeper.syncFailed(`failed to sync: ${explain(error)}`);
        }
        if (!this.#isTold) await this.#pause.wait(readEveryMs * (1 + 0.2 * random()), signal);
        if (this.#isTold) await clock.sleep(restMs, signal);
      }
    } finally {
      stop();
      this.#watched?.watch[Symbol.dispose]();
    }
  }

  async #sync(tell: () => void, signal: AbortSignal): Promise<void> {
    const { keeper, log, api } = this.#ports;
    const wish = this.#wish();
    this.#watch(wish, tell);
    if (wish.kind === "unknown") return;
    if (wish.kind === "none") return await keeper.unassign();
    if (wish.kind === "broken") return keeper.syncFailed(noSource);
    let found: ConfigMap;
    try {
      found = await api.get(wish.ref, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.warn("The config map can't be read", { ...wish.ref, err: messageOf(error) });
      return keeper.syncFailed(`failed to sync: failed to download config: ${messageOf(error)}`);
    }
    const version = await this.#checkpoint(wish.ref, found);
    if (typeof version === "string") return keeper.syncFailed(`failed to sync: ${version}`);
    await keeper.proposeAssigned(version, wish.by);
    await this.#removeOthers();
  }

  async #removeOthers(): Promise<void> {
    const { report } = this.#ports.keeper;
    if (report === undefined) return;
    const { assigned, active, good } = report;
    const sources = [assigned, active, good].flatMap((version) => {
      return version?.source.from === "configMap" ? [version.source] : [];
    });
    await this.#mapFiles.keepOnly(sources).catch((error: unknown) => {
      this.#ports.log.debug(1, "Old files of config maps can't be removed", { err: messageOf(error) });
    });
  }

  #wish(): Wish {
    if (this.#flag !== undefined) return { kind: "configMap", ref: this.#flag, by: "flag" };
    const node = this.#ports.api.node();
    if (node === undefined) return { kind: "unknown" };
    const source = node.spec?.configSource;
    if (source === undefined || source === null) return { kind: "none" };
    if (source.configMap === undefined) return { kind: "broken" };
    const { namespace, name, kubeletConfigKey: key } = source.configMap;
    return { kind: "configMap", ref: { namespace, name, key }, by: "node" };
  }

  #watch(wish: Wish, tell: () => void): void {
    const key = wish.kind === "configMap" ? `${wish.ref.namespace}/${wish.ref.name}` : "";
    if (this.#watched?.key === key) return;
    this.#watched?.watch[Symbol.dispose]();
    this.#watched = wish.kind === "configMap" ? { key, watch: this.#ports.api.watch(wish.ref, tell) } : undefined;
  }

  /** The version that the config map holds, kept as a file; or why there is none. */
  async #checkpoint(ref: ConfigMapRef, found: ConfigMap): Promise<ConfigVersion | string> {
    const { uid = "", resourceVersion = "" } = found.metadata ?? {};
    const source: ConfigMapSource = { ...ref, uid, resourceVersion };
    if (!hasFileNames(source)) return "the config map has no proper uid and resourceVersion";
    const text = found.data?.[ref.key];
    if (text === undefined) return `the config map has no key ${JSON.stringify(ref.key)}`;
    return configMapVersion(source, await this.#mapFiles.save(source, text), text);
  }
}

/** Somebody who sets a source that nothing follows waits for ever, unless told. */
export function warnOfIdleSource(api: ConfigApi, log: Logger): void {
  const stop = api.onNode(() => {
    if (api.node()?.spec?.configSource === undefined) return;
    log.warn("The Node has a configSource, which nothing follows: start the agent with --dynamic-config-dir");
    stop();
  });
}
