import { messageOf } from "../../../ground/base/index.ts";
import {
  type ConfigMap,
  type DownwardAPIVolumeFile,
  type IdentifiedPod,
  type KeyToPath,
  podField,
  type ResourceAmounts,
  resourceField,
  type Secret,
} from "../../../ground/model/index.ts";
import { type Content, ContentError, type ContentFile } from "./content.ts";

/**
 * What one source may put into a volume. An object of the API has at most 1.5 MiB: beyond this the same value is named again
 * and again, and thousands of names would fill the memory of the node, which holds these volumes too.
 */
const longestSource = 16 * 1024 * 1024;

/** Files of one source, which are refused when they are too much together. */
class SourceFiles {
  readonly files = new Map<string, ContentFile>();
  #left = longestSource;

  add(path: string, file: ContentFile): void {
    this.#left -= file.bytes.length;
    if (this.#left < 0) {
      const limit = `${longestSource / 1024 / 1024} MiB`;
      throw new ContentError(
        `the files of one source of the volume have more than ${limit} together; name fewer items`,
      );
    }
    this.files.set(path, file);
  }
}

export interface KeySelection {
  readonly items?: readonly KeyToPath[] | undefined;
  readonly optional?: boolean | undefined;
}

/** The files of a config map; binary data wins over text of the same key. */
export function configMapContent(map: ConfigMap, selection: KeySelection, defaultMode: number): Content {
  const bytes = new Map<string, Uint8Array>();
  for (const [key, text] of Object.entries(map.data ?? {})) bytes.set(key, Buffer.from(text));
  for (const [key, encoded] of Object.entries(map.binaryData ?? {})) bytes.set(key, Buffer.from(encoded, "base64"));
  return select(bytes, selection, defaultMode, (key) => `configmap references non-existent config key: ${key}`);
}

export function secretContent(secret: Secret, selection: KeySelection, defaultMode: number): Content {
  const bytes = new Map<string, Uint8Array>();
  for (const [key, encoded] of Object.entries(secret.data ?? {})) bytes.set(key, Buffer.from(encoded, "base64"));
  return select(bytes, selection, defaultMode, (key) => `references non-existent secret key: ${key}`);
}

function select(
  bytes: ReadonlyMap<string, Uint8Array>,
  { items, optional }: KeySelection,
  defaultMode: number,
  missing: (key: string) => string,
): Content {
  if (items === undefined || items.length === 0) {
    return new Map([...bytes].map(([key, content]) => [key, { bytes: content, mode: defaultMode }]));
  }
  const chosen = new SourceFiles();
  for (const { key, path, mode } of items) {
    const content = bytes.get(key);
    if (content !== undefined) chosen.add(path, { bytes: content, mode: mode ?? defaultMode });
    else if (optional !== true) throw new ContentError(missing(key));
  }
  return chosen.files;
}

/** What a pod may know of itself, as files. */
export function downwardContent(
  pod: IdentifiedPod,
  items: readonly DownwardAPIVolumeFile[],
  defaultMode: number,
  nodeAllocatable: ResourceAmounts,
): Content {
  const told = new SourceFiles();
  const problems: string[] = [];
  for (const { path, mode, fieldRef, resourceFieldRef } of items) {
    let text = "";
    try {
      const [container] = pod.spec.containers;
      if (fieldRef !== undefined) text = podField(pod, fieldRef.fieldPath, { podIps: [], hostIps: [] });
      else if (resourceFieldRef !== undefined && container !== undefined) {
        text = resourceField(pod, resourceFieldRef, container, nodeAllocatable);
      }
    } catch (error) {
      problems.push(messageOf(error));
    }
    told.add(path, { bytes: Buffer.from(text), mode: mode ?? defaultMode });
  }
  if (problems.length > 0) throw new ContentError(together(problems));
  return told.files;
}

/** Several problems as Go prints them in one error. */
export function together(problems: readonly string[]): string {
  const [only] = problems;
  return problems.length === 1 && only !== undefined ? only : `[${problems.join(", ")}]`;
}
