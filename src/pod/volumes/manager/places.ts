import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { pluginDirectory, type VolumePlace } from "../kinds/kind.ts";

/** A volume found on disk, by the directory names of the kind and of itself. */
export interface FoundVolume extends VolumePlace {
  /** `kubernetes.io/empty-dir`. */
  readonly plugin: string;
}

const forms = { filesystem: "volumes", block: "volumeDevices" } as const;

/** Where the things of pods lie below the agent's directory; the names are shared with the Go kubelet. */
export class PodPlaces {
  readonly podsDir: string;

  constructor(podsDir: string) {
    this.podsDir = podsDir;
  }

  pod(uid: PodUid): string {
    return join(this.podsDir, uid);
  }

  markers(uid: PodUid): string {
    return join(this.podsDir, uid, "plugins");
  }

  subPaths(uid: PodUid): string {
    return join(this.podsDir, uid, "volume-subpaths");
  }

  place(uid: PodUid, plugin: string, specName: string, form: VolumePlace["form"]): VolumePlace {
    const directory = join(this.podsDir, uid, forms[form], pluginDirectory(plugin), specName);
    return { uid, specName, form, directory, markers: this.markers(uid) };
  }

  async uids(): Promise<readonly PodUid[]> {
    return (await directoriesIn(this.podsDir)) as readonly PodUid[];
  }

  /** When something came to the pod's directory or went from it last; undefined: there is none. */
  async lastChange(uid: PodUid): Promise<number | undefined> {
    return (await ifThere(lstat(this.pod(uid)), undefined))?.mtimeMs;
  }

  /** What is on disk of a pod's volumes, whoever has made it. */
  async found(uid: PodUid): Promise<readonly FoundVolume[]> {
    const found: FoundVolume[] = [];
    for (const form of ["filesystem", "block"] as const) {
      const base = join(this.podsDir, uid, forms[form]);
      for (const pluginName of await ifThere(readdir(base), [])) {
        const plugin = pluginName.replaceAll("~", "/");
        for (const specName of await ifThere(readdir(join(base, pluginName)), [])) {
          found.push({ ...this.place(uid, plugin, specName, form), plugin });
        }
      }
    }
    return found;
  }

  /** The directories that hold volumes by kind, and those above them; to be removed when they are empty. */
  async holders(uid: PodUid): Promise<readonly string[]> {
    const holders: string[] = [];
    for (const name of Object.values(forms)) {
      const base = join(this.podsDir, uid, name);
      for (const plugin of await ifThere(readdir(base), [])) holders.push(join(base, plugin));
      holders.push(base);
    }
    return holders;
  }
}

async function directoriesIn(directory: string): Promise<readonly string[]> {
  const entries = await ifThere(readdir(directory, { withFileTypes: true }), []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}
