import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../../ground/base/index.ts";
import type { DiskProtocol, RemoteDisk } from "./protocol.ts";

const blockDirectory = "volumeDevices";

/** Where disks of one kind are, below `<root>/plugins`; the names are shared with the Go kubelet. */
export class DiskPlaces {
  readonly #root: string;
  readonly #depth: number;

  constructor({ plugin, depth }: Pick<DiskProtocol<RemoteDisk>, "plugin" | "depth">, pluginsDir: string) {
    this.#root = join(pluginsDir, plugin);
    this.#depth = depth;
  }

  of(directory: string, form: "filesystem" | "block"): string {
    return form === "block" ? join(this.#root, blockDirectory, directory) : join(this.#root, directory);
  }

  /** Whether the path is that of a place; nothing is looked at. */
  isOne(path: string): boolean {
    if (!path.startsWith(`${this.#root}/`)) return false;
    const parts = path.slice(this.#root.length + 1).split("/");
    return parts.length === this.#depth + (parts[0] === blockDirectory ? 1 : 0);
  }

  isForBlock(path: string): boolean {
    return path.startsWith(`${this.#root}/${blockDirectory}/`);
  }

  /** Those that are there. Only names are read: what is mounted in one may not answer, or be anybody's. */
  async all(): Promise<readonly string[]> {
    return [...(await this.#below(this.#root, this.#depth)), ...(await this.#below(this.of("", "block"), this.#depth))];
  }

  async #below(directory: string, depth: number): Promise<readonly string[]> {
    const found: string[] = [];
    for (const entry of await ifThere(readdir(directory, { withFileTypes: true }), [])) {
      if (!entry.isDirectory() || (directory === this.#root && entry.name === blockDirectory)) continue;
      const path = join(directory, entry.name);
      if (depth === 1) found.push(path);
      else found.push(...(await this.#below(path, depth - 1)));
    }
    return found;
  }
}
