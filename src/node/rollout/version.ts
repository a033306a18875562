import { createHash } from "node:crypto";
import {
  type ConfigIo,
  type ConfigSnapshot,
  type LoadResult,
  loadConfig,
  recordingIo,
  replayingIo,
} from "../../ground/config/index.ts";

/** Names a configuration by what it says: equal files have equal ids. */
export type VersionId = string;

/** Where a configuration was found. */
export type VersionSource =
  | { readonly from: "files" }
  | { readonly from: "trial"; readonly path: string }
  | ({ readonly from: "configMap" } & ConfigMapSource);

export interface ConfigMapSource {
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** A configuration with the bytes that it is made from, so that it can be loaded again whatever the files say by then. */
export interface ConfigVersion {
  readonly id: VersionId;
  readonly source: VersionSource;
  /** Words that go after those of the agent's command line. */
  readonly words: readonly string[];
  readonly snapshot: ConfigSnapshot;
}

export interface ReadVersion {
  readonly version: ConfigVersion;
  readonly loaded: LoadResult;
}

/** Loads a configuration from files, and notes all that was read for it. */
export async function readVersion(
  argv: readonly string[],
  { source, words }: Pick<ConfigVersion, "source" | "words">,
  io: ConfigIo,
): Promise<ReadVersion> {
  const recording = recordingIo(io);
  const loaded = await loadConfig([...argv, ...words], recording.io);
  return { version: versionOf({ source, words, snapshot: recording.snapshot() }), loaded };
}

/** Loads a configuration from the bytes it was first read from; flags are those of today. */
export async function loadVersion(argv: readonly string[], version: ConfigVersion, io: ConfigIo): Promise<LoadResult> {
  return await loadConfig([...argv, ...version.words], replayingIo(version.snapshot, io));
}

export function versionOf(content: Omit<ConfigVersion, "id">): ConfigVersion {
  return { id: idOf(content), ...content };
}

/** Whether the version is what its id says: a disk may give back something else than was written. */
export function isWhole(version: ConfigVersion): boolean {
  return version.id === idOf(version);
}

/** Whether two config maps say the same, whatever else was changed about them. */
export function isSameText(one: ConfigVersion, other: ConfigVersion): boolean {
  const texts = ({ snapshot }: ConfigVersion): string => JSON.stringify(Object.values(snapshot.files));
  return one.source.from === "configMap" && other.source.from === "configMap" && texts(one) === texts(other);
}

function idOf({ source, words, snapshot }: Omit<ConfigVersion, "id">): VersionId {
  return createHash("sha256")
    .update(JSON.stringify([source, words, snapshot]))
    .digest("hex")
    .slice(0, 16);
}

/** For people and for the API. */
export function describeSource(source: VersionSource): string {
  switch (source.from) {
    case "files":
      return "local";
    case "trial":
      return `trial of ${source.path}`;
    case "configMap":
      return `/api/v1/namespaces/${source.namespace}/configmaps/${source.name}`;
  }
}
