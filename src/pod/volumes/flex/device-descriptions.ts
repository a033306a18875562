import { createHash } from "node:crypto";
import { mkdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ifThere, saveFile } from "../../../ground/base/index.ts";
import { deviceMountsOf, type FlexVolume, flexUniqueName, optionsFor } from "./flex-volume.ts";

type Named = Pick<FlexVolume, "driver" | "specName">;

/**
 * What is mounted for all pods under a name, as those who had it mounted described it: names of volumes are chosen by
 * pods, and one that comes after a restart of the agent must not get what another one had mounted. On disk is a digest,
 * since options may say what is nobody's business.
 */
export class DeviceDescriptions {
  readonly #pluginsDir: string;
  readonly #known = new Map<string, string>();

  constructor(pluginsDir: string) {
    this.#pluginsDir = pluginsDir;
  }

  /** Whether what is mounted is this volume, as far as anybody knows. */
  async fits(volume: FlexVolume, isMounted: boolean): Promise<boolean> {
    const known = this.#known.get(flexUniqueName(volume)) ?? (isMounted ? await this.#noted(volume) : undefined);
    return known === undefined || known === digestOf(volume);
  }

  /** Before it is mounted: the agent may end at any moment. */
  async note(volume: FlexVolume): Promise<void> {
    const digest = digestOf(volume);
    if ((await this.#noted(volume)) === digest) return;
    const path = this.#path(volume);
    await mkdir(dirname(path), { recursive: true, mode: 0o750 });
    await saveFile(path, digest, 0o600);
  }

  mounted(volume: FlexVolume): void {
    this.#known.set(flexUniqueName(volume), digestOf(volume));
  }

  async forget(volume: Named): Promise<void> {
    this.#known.delete(flexUniqueName(volume));
    await rm(this.#path(volume), { force: true });
  }

  async #noted(volume: Named): Promise<string | undefined> {
    return await ifThere(readFile(this.#path(volume), "utf8"));
  }

  #path({ driver, specName }: Named): string {
    return join(dirname(deviceMountsOf(this.#pluginsDir, driver)), "described", specName);
  }
}

/** Whether a pod may write is its own affair. */
function digestOf(volume: FlexVolume): string {
  return createHash("sha256")
    .update(optionsFor({ ...volume, readOnly: false }))
    .digest("hex");
}
