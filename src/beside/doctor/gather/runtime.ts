import { constants } from "node:fs";
import { access } from "node:fs/promises";
import type { CriClient } from "../../../connections/cri/index.ts";
import { hasCode, LinkedSignal, messageOf } from "../../../ground/base/index.ts";
import { settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";

/** The container runtime, as it answers now. */
export type ExaminedRuntime =
  /** `isDenied`: it answers root only. */
  | { readonly state: "silent"; readonly endpoint: string; readonly problem: string; readonly isDenied: boolean }
  | {
      readonly state: "answers";
      readonly endpoint: string;
      readonly tookMs: number;
      readonly name: string;
      readonly version: string;
      readonly conditions: readonly { readonly type: string; readonly status: boolean; readonly message: string }[];
      /** Undefined: it does not tell. */
      readonly cgroupDriver: "systemd" | "cgroupfs" | undefined;
      /** By its configuration, where it tells that. */
      readonly configuredDriver: "systemd" | "cgroupfs" | undefined;
      readonly offersEvents: boolean | undefined;
      readonly sandboxImage: SandboxImage | undefined;
      readonly cni: CniFacts | undefined;
      /** Ids of sandboxes whose shim runs although the runtime does not know them. */
      readonly strayShims: readonly string[];
      readonly imageDisk:
        | { readonly path: string; readonly availableBytes: number; readonly capacityBytes: number }
        | undefined;
    };

export interface SandboxImage {
  readonly name: string;
  readonly isThere: boolean;
  readonly isPinned: boolean;
}

export interface CniFacts {
  readonly configDir: string;
  readonly configs: readonly string[];
  /** Plugins that a configuration names and no directory has. */
  readonly missingPlugins: readonly string[];
  readonly binDirs: readonly string[];
}

const usualMs = 1_000;

export async function gatherRuntime(
  world: ExaminedWorld,
  need: NeedFact,
  signal: AbortSignal,
): Promise<ExaminedRuntime> {
  const config = await need("config");
  const endpoint = settingText(config, "containerRuntimeEndpoint");
  // gRPC is large: loaded only when the runtime is asked.
  const { CriClient } = await import("../../../connections/cri/index.ts");
  const { clock, patience } = world;
  const withinMs = Math.round(usualMs * patience);
  const startedAt = clock.monotonic();
  const imageEndpoint = settingText(config, "imageServiceEndpoint");
  const client = new CriClient({ runtimeEndpoint: endpoint, imageEndpoint, requestTimeoutMs: withinMs }, { clock });
  try {
    const options = { signal, timeoutMs: withinMs };
    const version = await client.runtime.version({ version: "0.1.0" }, options);
    const tookMs = clock.monotonic() - startedAt;
    const status = await client.runtime.status({ verbose: true }, options);
    const info = parseInfo(status.info["config"]);
    return {
      state: "answers",
      endpoint,
      tookMs,
      name: version.runtimeName,
      version: version.runtimeVersion,
      conditions: (status.status?.conditions ?? []).map(({ type, status: isMet, message }) => ({
        type,
        status: isMet,
        message,
      })),
      ...(await details(world, need, client, info, options)),
    };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { state: "silent", endpoint, problem: messageOf(error), isDenied: await isDenied(client) };
  } finally {
    client.close();
  }
}

async function isDenied({ runtimeSocketPath }: CriClient): Promise<boolean> {
  return await access(runtimeSocketPath, constants.W_OK).then(
    () => false,
    (error: unknown) => hasCode(error, "EACCES", "EPERM"),
  );
}

interface CallLimits {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

async function details(
  world: ExaminedWorld,
  need: NeedFact,
  client: CriClient,
  info: RuntimeInfo,
  options: CallLimits,
) {
  const [cgroupDriver, offersEvents, sandboxImage, cni, strayShims, imageDisk] = await Promise.all([
    cgroupDriverOf(client, options),
    eventsOffered(world, client, options.signal),
    sandboxImageOf(client, info.sandboxImage, options),
    info.cniConfDir === undefined ? undefined : cniFacts(world, info.cniConfDir, info.cniBinDirs),
    strayShimsOf(client, need, options),
    diskOfImages(world, client, options),
  ]);
  return { cgroupDriver, configuredDriver: info.cgroupDriver, offersEvents, sandboxImage, cni, strayShims, imageDisk };
}

interface RuntimeInfo {
  readonly sandboxImage: string | undefined;
  readonly cniConfDir: string | undefined;
  readonly cniBinDirs: readonly string[];
  /** By its own configuration. */
  readonly cgroupDriver: "systemd" | "cgroupfs" | undefined;
}

/** containerd tells its configuration; where others don't, nothing is known. */
export function parseInfo(json: string | undefined): RuntimeInfo {
  const none = { sandboxImage: undefined, cniConfDir: undefined, cniBinDirs: [], cgroupDriver: undefined };
  if (json === undefined || json.length > 256 * 1024) return none;
  let parsed: Readonly<Record<string, unknown>>;
  try {
    parsed = JSON.parse(json) as Readonly<Record<string, unknown>>;
  } catch {
    return none;
  }
  const cni = (parsed["cni"] ?? {}) as Readonly<Record<string, unknown>>;
  const dirs = cni["binDirs"] ?? cni["binDir"];
  const text = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);
  return {
    sandboxImage: text(parsed["sandboxImage"]),
    cniConfDir: text(cni["confDir"]),
    cgroupDriver: driverIn(parsed["containerd"]),
    cniBinDirs: (Array.isArray(dirs) ? dirs : [dirs]).flatMap((each) => text(each) ?? []),
  };
}

/** Of the runtime that containers get when nobody asks for another. */
function driverIn(containerd: unknown): "systemd" | "cgroupfs" | undefined {
  const { defaultRuntimeName, runtimes } = (containerd ?? {}) as {
    readonly defaultRuntimeName?: string;
    readonly runtimes?: Readonly<Record<string, { readonly options?: { readonly SystemdCgroup?: boolean } | null }>>;
  };
  const runtime =
    runtimes === undefined || !Object.hasOwn(runtimes, defaultRuntimeName ?? "")
      ? undefined
      : runtimes[defaultRuntimeName ?? ""];
  if (runtime === undefined) return undefined;
  return runtime.options?.SystemdCgroup === true ? "systemd" : "cgroupfs";
}

async function cgroupDriverOf(client: CriClient, options: CallLimits): Promise<"systemd" | "cgroupfs" | undefined> {
  const { CgroupDriver } = await import("../../../connections/cri/index.ts");
  const answer = await client.runtime.runtimeConfig({}, options).catch(() => undefined);
  if (answer?.linux === undefined) return undefined;
  return answer.linux.cgroupDriver === CgroupDriver.SYSTEMD ? "systemd" : "cgroupfs";
}

const listenMs = 150;

/** A runtime without events says so at once; one with them says nothing until something happens. */
async function eventsOffered(
  { clock }: ExaminedWorld,
  client: CriClient,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  const { criCodeOf } = await import("../../../connections/cri/index.ts");
  using listening = new LinkedSignal(signal);
  const timer = clock.after(listenMs, () => listening.abort(new DOMException("heard enough", "AbortError")));
  try {
    for await (const _ of client.runtime.getContainerEvents({}, { signal: listening.signal })) return true;
    return undefined;
  } catch (error) {
    if (listening.signal.aborted) return true;
    return criCodeOf(error) === "Unimplemented" ? false : undefined;
  } finally {
    timer.cancel();
  }
}

async function sandboxImageOf(
  client: CriClient,
  name: string | undefined,
  options: CallLimits,
): Promise<SandboxImage | undefined> {
  if (name === undefined) return undefined;
  const answer = await client.images
    .imageStatus(
      { image: { image: name, userSpecifiedImage: "", runtimeHandler: "", annotations: {} }, verbose: false },
      options,
    )
    .catch(() => undefined);
  if (answer === undefined) return undefined;
  return { name, isThere: answer.image !== undefined, isPinned: answer.image?.pinned === true };
}

async function cniFacts({ machine }: ExaminedWorld, configDir: string, binDirs: readonly string[]): Promise<CniFacts> {
  const configs = (await machine.names(configDir, 100).catch(() => [])).filter((name) =>
    /\.(?:conf|conflist|json)$/.test(name),
  );
  const [first] = configs;
  const plugins =
    first === undefined ? [] : pluginsIn((await machine.textIfThere(`${configDir}/${first}`).catch(() => "")) ?? "");
  const missingPlugins: string[] = [];
  for (const plugin of plugins) {
    if (!(await isInAny(machine, binDirs, plugin))) missingPlugins.push(plugin);
  }
  return { configDir, configs, missingPlugins, binDirs };
}

async function isInAny(
  machine: ExaminedWorld["machine"],
  directories: readonly string[],
  name: string,
): Promise<boolean> {
  for (const directory of directories) if (await machine.isThere(`${directory}/${name}`)) return true;
  return false;
}

export function pluginsIn(config: string): readonly string[] {
  let parsed: { readonly type?: unknown; readonly plugins?: unknown };
  try {
    parsed = JSON.parse(config) as typeof parsed;
  } catch {
    return [];
  }
  const list = Array.isArray(parsed.plugins) ? (parsed.plugins as readonly { readonly type?: unknown }[]) : [parsed];
  // A type that leaves the directory is nobody's plugin.
  return list.flatMap(({ type }) => (typeof type === "string" && /^[\w.-]+$/.test(type) ? [type] : []));
}

async function strayShimsOf(client: CriClient, need: NeedFact, options: CallLimits): Promise<readonly string[]> {
  const shims = (await need("processes")).filter(({ program }) => program === "containerd-shim");
  const own = shims.flatMap(({ args }) => {
    const value = (name: string): string => args[args.indexOf(name) + 1] ?? "";
    const isHere = value("-namespace") === "k8s.io" && value("-address") === client.runtimeSocketPath;
    return isHere ? [value("-id")] : [];
  });
  if (own.length === 0) return [];
  const listed = await client.runtime.listPodSandbox({ filter: undefined }, options).catch(() => undefined);
  if (listed === undefined) return [];
  const known = new Set(listed.items.map(({ id }) => id));
  return own.filter((id) => !known.has(id));
}

async function diskOfImages({ files }: ExaminedWorld, client: CriClient, options: CallLimits) {
  const answer = await client.images.imageFsInfo({}, options).catch(() => undefined);
  const path = answer?.imageFilesystems[0]?.fsId?.mountpoint;
  if (path === undefined || path === "") return undefined;
  const found = await files.fileSystem(path).catch(() => undefined);
  if (found === undefined) return undefined;
  return { path, availableBytes: found.bavail * found.bsize, capacityBytes: found.blocks * found.bsize };
}
