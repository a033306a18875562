import { readFile, rename } from "node:fs/promises";
import { hasCode, type Logger, saveFile } from "../../../ground/base/index.ts";
import { type AllocatedResources, fnv1a32, type PodUid } from "../../../ground/model/index.ts";

type ByPod = ReadonlyMap<PodUid, AllocatedResources>;

/**
 * A file of the kubelet's own form that says what containers were promised, or were given: either agent goes on with
 * what the other has left. Changes that come while it is written are written together.
 */
export class ResourcesFile {
  readonly #path: string;
  readonly #log: Logger;
  readonly #content: () => ByPod;
  #written: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(path: string, log: Logger, content: () => ByPod) {
    this.#path = path;
    this.#log = log;
    this.#content = content;
  }

  /** A file that can't be used is set aside, so that people can look at it: pods that run go on with what they have. */
  async read(): Promise<ByPod> {
    try {
      return decode(await readFile(this.#path, "utf8"));
    } catch (error) {
      if (hasCode(error, "ENOENT")) return new Map();
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

  /** Resolves when everything that is so now would outlive the agent and a loss of power. */
  save(): Promise<void> {
    this.#next ??= this.#written
      .catch(() => undefined)
      .then(() => {
        this.#next = undefined;
        this.#written = saveFile(this.#path, encode(this.#content()), 0o600);
        return this.#written;
      });
    return this.#next;
  }
}

function encode(content: ByPod): string {
  const entries = Object.fromEntries([...content].map(([uid, { pod, containers }]) => [uid, entryOf(pod, containers)]));
  const data = JSON.stringify({ entries });
  return JSON.stringify({ data, checksum: checksumOf(data) });
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
  const { data, checksum } = asObject(JSON.parse(text), "the file");
  if (typeof data !== "string") throw new Error(`"data" is ${typeof data}, wanted a text`);
  if (checksum !== checksumOf(data)) {
    throw new Error(`the checksum is ${String(checksum)}, the data's is ${checksumOf(data)}: the file is damaged`);
  }
  const { entries } = asObject(JSON.parse(data), "data");
  const byPod = new Map<PodUid, AllocatedResources>();
  for (const [uid, entry] of Object.entries(asObject(entries ?? {}, "entries"))) {
    const members = asObject(entry, uid);
    const containers = asObject(members["ContainerResources"] ?? {}, uid);
    for (const [name, resources] of Object.entries(containers)) requireLists(resources, name);
    const podLevel = members["PodLevelResources"] ?? undefined;
    if (podLevel !== undefined) requireLists(podLevel, "PodLevelResources");
    const pod = podLevel ?? (members[nothingAsAWhole] === true ? "none" : undefined);
    byPod.set(uid as PodUid, { ...(pod === undefined ? {} : { pod }), containers } as AllocatedResources);
  }
  return byPod;
}

function requireLists(resources: unknown, name: string): void {
  for (const list of ["requests", "limits"]) asObject(asObject(resources, name)[list] ?? {}, `${name}.${list}`);
}

/** As the kubelet computes it: over the text as its debug printer shows it. */
function checksumOf(data: string): number {
  return fnv1a32(Buffer.from(`(string)${data}`).toString("latin1"));
}

function asObject(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new Error(`${what} is ${JSON.stringify(value)?.slice(0, 40)}, wanted an object`);
}
