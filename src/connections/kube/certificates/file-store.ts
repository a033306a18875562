import { lstat, mkdir, readFile, rename, rm, symlink } from "node:fs/promises";
import { join, resolve } from "node:path";
import {
  type Clock,
  hasCode,
  isShortage,
  isThere,
  type Logger,
  messageOf,
  saveFile,
  syncDirectory,
} from "../../../ground/base/index.ts";
import { type KeptCertificate, keptCertificate } from "./facts.ts";

export interface FileStoreSettings {
  readonly directory: string;
  /** Such as kubelet-client: what the names of the files begin with. */
  readonly prefix: string;
  /** Where else a certificate may be, for when none is kept here. */
  readonly otherwise?: { readonly certFile: string; readonly keyFile: string } | undefined;
}

/**
 * Certificates with their keys as files: one for each that was issued, and `<prefix>-current.pem`, a link to the one in
 * use. The kubelet keeps them the same way, so that either can go on where the other stopped.
 */
export class CertificateFileStore {
  readonly #settings: FileStoreSettings;
  readonly #clock: Clock;
  readonly #log: Logger;

  constructor(settings: FileStoreSettings, ports: { readonly clock: Clock; readonly log: Logger }) {
    this.#settings = { ...settings, directory: resolve(settings.directory) };
    this.#clock = ports.clock;
    this.#log = ports.log;
  }

  get currentPath(): string {
    return this.#path("-current.pem");
  }

  /**
   * What is kept, else what the other places hold; undefined when that is nothing of use. Rejects while the machine lacks
   * what it takes to look: the node would ask to be let in anew, with credentials that may be gone.
   */
  async read(): Promise<KeptCertificate | undefined> {
    await this.#finishSwitch();
    const { otherwise } = this.#settings;
    const current = { certFile: this.currentPath, keyFile: this.currentPath };
    const plain = { certFile: this.#path(".crt"), keyFile: this.#path(".key") };
    for (const { certFile, keyFile } of [current, ...(otherwise === undefined ? [] : [otherwise]), plain]) {
      const kept = await this.#readPair(certFile, keyFile);
      if (kept !== undefined) return kept;
    }
    return undefined;
  }

  /** Keeps them as the current ones. Rejects a certificate that is not the key's. */
  async save(certificate: string, key: string): Promise<KeptCertificate> {
    const kept = keptCertificate(certificate, key);
    await this.#checkLink(this.currentPath);
    await mkdir(this.#settings.directory, { recursive: true, mode: 0o755 });
    const path = this.#path(`-${localTime(this.#clock.now())}.pem`);
    await saveFile(path, `${kept.certificate}${kept.key}`, 0o600);
    const updated = this.#path("-updated.pem");
    await rm(updated, { force: true });
    await symlink(path, updated);
    await rename(updated, this.currentPath);
    // The server may know the old certificate no more: the switch must outlive a loss of power.
    await syncDirectory(this.#settings.directory);
    return kept;
  }

  #path(ending: string): string {
    const { directory, prefix } = this.#settings;
    return join(directory, `${prefix}${ending}`);
  }

  /** A switch to a new certificate that was cut off between its two steps. */
  async #finishSwitch(): Promise<void> {
    const updated = this.#path("-updated.pem");
    if ((await this.#checkLink(this.currentPath)) || !(await this.#checkLink(updated))) return;
    await rename(updated, this.currentPath);
  }

  /** True when there is such a link. */
  async #checkLink(path: string): Promise<boolean> {
    try {
      if ((await lstat(path)).isSymbolicLink()) return true;
    } catch (error) {
      if (hasCode(error, "ENOENT")) return false;
      throw error;
    }
    throw new Error(`expected "${path}" to be a symlink but it is a file`);
  }

  async #readPair(certFile: string, keyFile: string): Promise<KeptCertificate | undefined> {
    if (!(await isThere(certFile)) || !(await isThere(keyFile))) return undefined;
    try {
      return keptCertificate(await readFile(certFile, "utf8"), await readFile(keyFile, "utf8"));
    } catch (error) {
      if (isShortage(error)) throw error;
      this.#log.warn("Cannot use the saved certificate", { certFile, keyFile, err: messageOf(error) });
      return undefined;
    }
  }
}

/** 2026-01-31-23-59-59, by the machine's own time zone. */
function localTime(ms: number): string {
  const date = new Date(ms);
  const parts = [date.getFullYear(), date.getMonth() + 1, date.getDate()];
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()];
  return [...parts, ...time].map((part) => String(part).padStart(2, "0")).join("-");
}
