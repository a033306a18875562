import { join } from "node:path";
import { type Clock, type Logger, messageOf, onAbort, Pause } from "../../ground/base/index.ts";
import { decodeYaml } from "../../ground/model/index.ts";
import type { ConfigKeeper } from "./config-keeper.ts";
import { ConfigMapFiles } from "./config-map-files.ts";
import type { RolloutReport } from "./ports.ts";
import type { StoreDisk } from "./store.ts";
import { type ConfigMapSource, type ConfigVersion, describeSource, type VersionSource } from "./version.ts";

/** What another kubelet left behind: undefined stands for the local files. */
export interface OldNotes {
  readonly assigned: ConfigVersion | undefined;
  readonly good: ConfigVersion | undefined;
  /** What could not be read of it. */
  readonly problems: readonly string[];
}

const names = { assigned: "assigned", good: "last-known-good" } as const;

/**
 * What a kubelet up to v1.23 noted as assigned and as known to be good, with the config maps that it had fetched. Where
 * the assigned one is lost it would have gone on with the good one, and so that stands in for it.
 */
export async function readOldNotes(directory: string, disk: StoreDisk): Promise<OldNotes> {
  const mapFiles = new ConfigMapFiles(directory, disk);
  const problems: string[] = [];
  const read = async (name: string): Promise<ConfigVersion | "none" | "lost"> => {
    try {
      const text = (await disk.read(metaPath(directory, name))) ?? "";
      return text.trim() === "" ? "none" : await checkpointOf(sourceIn(name, await decodeYaml(text)), mapFiles);
    } catch (error) {
      problems.push(messageOf(error));
      return "lost";
    }
  };
  const [assigned, found] = [await read(names.assigned), await read(names.good)];
  const good = typeof found === "string" ? undefined : found;
  return { assigned: typeof assigned === "object" ? assigned : assigned === "lost" ? good : undefined, good, problems };
}

async function checkpointOf(source: ConfigMapSource, mapFiles: ConfigMapFiles): Promise<ConfigVersion> {
  const found = await mapFiles.find(source);
  if (found !== undefined) return found;
  const { uid, resourceVersion } = source;
  const path = describeSource({ from: "configMap", ...source });
  throw new Error(`no checkpoint for source ${path}, UID: ${uid}, ResourceVersion: ${resourceVersion}`);
}

function sourceIn(name: string, note: unknown): ConfigMapSource {
  const field = (value: unknown, key: string): unknown =>
    typeof value === "object" && value !== null && Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
  const map = field(field(note, "source"), "configMap");
  const word = (key: string): string => {
    const value = field(map, key);
    if (typeof value !== "string" || value === "") throw new Error(`"store/meta/${name}" names no ${key}`);
    return value;
  };
  if (field(note, "kind") !== "SerializedNodeConfigSource")
    throw new Error(`"store/meta/${name}" is no SerializedNodeConfigSource`);
  return {
    namespace: word("namespace"),
    name: word("name"),
    key: word("kubeletConfigKey"),
    uid: word("uid"),
    resourceVersion: word("resourceVersion"),
  };
}

interface OldMetaPorts {
  readonly keeper: Pick<ConfigKeeper, "changed" | "report">;
  readonly disk: StoreDisk;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Keeps the notes of older kubelets up to what the keeper reports. */
export async function keepOldMeta(
  directory: string,
  { keeper, disk, clock, log }: OldMetaPorts,
  signal: AbortSignal,
): Promise<void> {
  const pause = new Pause(clock);
  const stop = keeper.changed.on(() => pause.cutShort());
  onAbort(signal, stop);
  while (!signal.aborted) {
    const { report } = keeper;
    if (report !== undefined) {
      await writeOldMeta(directory, report, disk).catch((error: unknown) => {
        log.debug(1, "The notes of older kubelets can't be written", { err: messageOf(error) });
      });
    }
    await pause.wait(Number.POSITIVE_INFINITY, signal);
  }
}

/** Notes what is assigned and known to be good as kubelets up to v1.23 did, for them and for whoever looks there. */
async function writeOldMeta(directory: string, report: RolloutReport, disk: StoreDisk): Promise<void> {
  const rows = [
    [names.assigned, report.assigned?.source],
    [names.good, report.good?.source],
  ] as const;
  for (const [name, source] of rows) {
    const path = metaPath(directory, name);
    const text = serialized(source);
    if ((await disk.read(path)) !== text) await disk.saveDurably(path, text);
  }
}

function metaPath(directory: string, name: string): string {
  return join(directory, "store", "meta", name);
}

/** An empty file stands for the local files. */
function serialized(source: VersionSource | undefined): string {
  if (source?.from !== "configMap") return "";
  const { namespace, name, uid, resourceVersion, key } = source;
  return [
    "apiVersion: kubelet.config.k8s.io/v1beta1",
    "kind: SerializedNodeConfigSource",
    "source:",
    "  configMap:",
    `    kubeletConfigKey: ${JSON.stringify(key)}`,
    `    name: ${JSON.stringify(name)}`,
    `    namespace: ${JSON.stringify(namespace)}`,
    `    resourceVersion: ${JSON.stringify(resourceVersion)}`,
    `    uid: ${JSON.stringify(uid)}`,
    "",
  ].join("\n");
}
