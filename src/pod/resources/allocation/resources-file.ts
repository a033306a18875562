import { rename } from "node:fs/promises";
import { isShortage, type Logger, replaceFile } from "../../../ground/base/index.ts";
import type { AllocatedResources, PodUid } from "../../../ground/model/index.ts";
import { diskFiles } from "../disk-files.ts";
import { FollowingFile, type LastingFiles } from "../following-file.ts";
import { asCheckpointObject, goChecksum } from "../go-checkpoint.ts";

/**
 * A loss of power ends the containers that the file tells of, and the next agent decides anew about what they ask for: the
 * file as it was a moment before serves it as well. So nobody waits for the disk to keep the new name, too.
 */
const files: LastingFiles = { read: diskFiles.read, save: (path, text) => replaceFile(path, text, 0o600) };

type ByPod = ReadonlyMap<PodUid, AllocatedResources>;

/**
 * A file of the kubelet's own form that says what containers were promised, or were given: either agent goes on with
 * what the other has left. Changes that come while it is written are written together.
 */
export class ResourcesFile {
  readonly #path: string;
  readonly #log: Logger;
  readonly #file: FollowingFile;

  constructor(path: string, log: Logger, content: () => ByPod) {
    this.#path = path;
    this.#log = log;
    this.#file = new FollowingFile(path, files, () => encode(content()));
  }

  /**
   * A file that can't be used is set aside, so that people can look at it: pods that run go on with what they have. Throws
   * while the machine lacks what it takes to read it: nothing is wrong with the file.
   */
  async read(): Promise<ByPod> {
    try {
      const text = await this.#file.read();
      return text === undefined ? new Map() : decode(text);
    } catch (error) {
      if (isShortage(error)) throw error;
      const aside = `${this.#path}.broken`;
      this.#log.error("Cannot use what was kept of the resources of pods; their specs are believed instead", error, {
        path: this.#path,
        movedTo: aside,
      });
      try {
        await rename(this.#path, aside);
      } catch (renameError) {
        this.#log.warn("Could not set the file aside", { path: this.#path, err: renameError });
      }
      return new Map();
    }
  }

  /** Resolves when everything that is so now would outlive the agent. */
  save(): Promise<void> {
    return this.#file.save();
  }
}

function encode(content: ByPod): string {
  const entries = Object.fromEntries([...content].map(([uid, { pod, containers }]) => [uid, entryOf(pod, containers)]));
  const data = JSON.stringify({ entries });
  return JSON.stringify({ data, checksum: goChecksum(`(string)${data}`) });
}

/**
 * Kubelets before v1.35 neither write nor read what pods are promised as a whole, and later ones write null both for
 * "nothing" and for "not noted". To tell these apart is worth a word that kubelets skip: a resize that adds such
 * resources must not pass for an old promise after a restart.
 */
function entryOf(pod: AllocatedResources["pod"], containers: AllocatedResources["containers"]): object {
  return {
    ContainerResources: containers,
    ...(pod === undefined ? {} : pod === "none" ? { [nothingAsAWhole]: true } : { PodLevelResources: pod }),
  };
}

const nothingAsAWhole = "withoutPodLevelResources";

function decode(text: string): ByPod {
  const { data, checksum } = asCheckpointObject(JSON.parse(text), "the file");
  if (typeof data !== "string") throw new Error(`"data" is ${typeof data}, wanted a text`);
  if (checksum !== goChecksum(`(string)${data}`)) {
    throw new Error(
      `the checksum is ${String(checksum)}, the data's is ${goChecksum(`(string)${data}`)}: the file is damaged`,
    );
  }
  const { entries } = asCheckpointObject(JSON.parse(data), "data");
  const byPod = new Map<PodUid, AllocatedResources>();
  for (const [uid, entry] of Object.entries(asCheckpointObject(entries ?? {}, "entries"))) {
    const members = asCheckpointObject(entry, uid);
    const containers = asCheckpointObject(members["ContainerResources"] ?? {}, uid);
    for (const [name, resources] of Object.entries(containers)) requireLists(resources, name);
    const podLevel = members["PodLevelResources"] ?? undefined;
    if (podLevel !== undefined) requireLists(podLevel, "PodLevelResources");
    const pod = podLevel ?? (members[nothingAsAWhole] === true ? "none" : undefined);
    byPod.set(uid as PodUid, { ...(pod === undefined ? {} : { pod }), containers } as AllocatedResources);
  }
  return byPod;
}

function requireLists(resources: unknown, name: string): void {
  for (const list of ["requests", "limits"])
    asCheckpointObject(asCheckpointObject(resources, name)[list] ?? {}, `${name}.${list}`);
}
