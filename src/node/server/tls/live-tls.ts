import { X509Certificate } from "node:crypto";
import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { createSecureContext } from "node:tls";
import { type Clock, hasCode, type Logger, Pause } from "../../../ground/base/index.ts";
import type { ServingFiles } from "./serving-files.ts";

export interface LiveTlsFiles extends ServingFiles {
  /** Authorities of client certificates; empty: none are asked for. */
  readonly clientCaFile: string;
  /** `late`: the certificate may come after the start; until then no handshake succeeds. */
  readonly certificate: "needed" | "late";
}

/** What the files say now. */
export interface TlsMaterial {
  readonly cert?: Buffer;
  readonly key?: Buffer;
  readonly ca?: Buffer;
}

// Where the kernel doesn't tell of changes, as on network file systems.
const lookAnywayMs = 60_000;
const settleMs = 200;

/** The files that TLS is served with, read again whenever they change. What does not fit together is not taken over. */
export class LiveTls {
  readonly #files: LiveTlsFiles;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #pause: Pause;
  #current: TlsMaterial = {};

  constructor(files: LiveTlsFiles, ports: { readonly clock: Clock; readonly log: Logger }) {
    this.#files = files;
    this.#clock = ports.clock;
    this.#log = ports.log;
    this.#pause = new Pause(ports.clock);
  }

  /** Rejects when they can't be served with. */
  async read(): Promise<TlsMaterial> {
    const { certFile, keyFile, clientCaFile, certificate } = this.#files;
    const optional = certificate === "late";
    const [cert, key, ca] = await Promise.all([
      readPem(certFile, optional),
      readPem(keyFile, optional),
      clientCaFile === "" ? undefined : readPem(clientCaFile, false),
    ]);
    // One that comes late is replaced before it expires; if that fails, none is better than one that nobody believes.
    const hasPair = cert !== undefined && key !== undefined && !(optional && this.#hasExpired(cert));
    const material = { ...(hasPair && { cert, key }), ...(ca && { ca }) };
    check(material, this.#files);
    this.#current = material;
    return material;
  }

  #hasExpired(cert: Buffer): boolean {
    return Date.parse(new X509Certificate(cert).validTo) <= this.#clock.now();
  }

  async run(onChange: (material: TlsMaterial) => void, signal: AbortSignal): Promise<void> {
    const { certFile, keyFile, clientCaFile } = this.#files;
    const paths = [certFile, keyFile, clientCaFile].filter((path) => path !== "");
    const watchers = [...new Set(paths.map(dirname))].map((directory) => this.#watch(directory));
    try {
      while (!signal.aborted) {
        await this.#pause.wait(lookAnywayMs, signal);
        // Certificate and key are replaced one after the other.
        await this.#clock.sleep(settleMs, signal);
        await this.#lookAgain(onChange);
      }
    } finally {
      for (const watcher of watchers) watcher?.close();
    }
  }

  async #lookAgain(onChange: (material: TlsMaterial) => void): Promise<void> {
    const before = this.#current;
    try {
      const now = await this.read();
      if (isSame(before, now)) return;
      onChange(now);
      this.#log.info("Loaded the new serving certificate or client authorities", { ...this.#files });
    } catch (error) {
      this.#current = before;
      this.#log.error("The TLS files have changed but cannot be used; going on with the old ones", error);
    }
  }

  #watch(directory: string): FSWatcher | undefined {
    try {
      return watch(directory, { persistent: false }, () => this.#pause.cutShort()).on("error", () => {});
    } catch {
      return undefined;
    }
  }
}

async function readPem(path: string, optional: boolean): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (optional && hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function check({ cert, key, ca }: TlsMaterial, files: LiveTlsFiles): void {
  try {
    if (cert !== undefined && key !== undefined) createSecureContext({ cert, key });
  } catch (error) {
    throw new Error(`${files.certFile} and ${files.keyFile} are not a certificate and its key`, { cause: error });
  }
  try {
    if (ca !== undefined) new X509Certificate(ca);
  } catch (error) {
    throw new Error(`unable to load client CA file ${files.clientCaFile}: it has no certificate`, { cause: error });
  }
}

function isSame(a: TlsMaterial, b: TlsMaterial): boolean {
  const equal = (x: Buffer | undefined, y: Buffer | undefined): boolean => (x && y ? x.equals(y) : x === y);
  return equal(a.cert, b.cert) && equal(a.key, b.key) && equal(a.ca, b.ca);
}
