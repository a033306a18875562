import { createHash } from "node:crypto";
import { createSecureContext } from "node:tls";
import { type Clock, type Logger, messageOf } from "../../../ground/base/index.ts";
import type { UserAccess } from "./kubeconfig-user.ts";
import { LiveFile } from "./live-file.ts";
import { LiveMaterial } from "./material.ts";

/** Proves to the API server who we are. What it hands out may change from one call to the next. */
export interface Credentials {
  /** Headers for one request. */
  headers(signal: AbortSignal): Promise<Headers>;
  /** What new connections show; a connection that showed another is to be given up. */
  certificate(signal: AbortSignal): Promise<ClientCertificate | undefined>;
  /** The server refused us (401): look again instead of trusting what is cached. True when that may change something. */
  refused(): boolean;
}

export type Headers = Readonly<Record<string, string | readonly string[]>>;

export interface ClientCertificate {
  /** Differs between different certificates. */
  readonly id: string;
  readonly certificate: Buffer;
  readonly key: Buffer;
}

/** What should say who we are cannot be had: a file is unreadable, a plugin fails. */
export class CredentialError extends Error {
  override readonly name = "CredentialError";
}

/** A certificate and key in files (or data), re-read when they change. */
export class CertificateFiles {
  readonly #certificate: LiveMaterial;
  readonly #key: LiveMaterial;
  readonly #log: Logger;
  #good: ClientCertificate | undefined;
  #badId = "";

  constructor(user: NonNullable<UserAccess["certificate"]>, clock: Clock, log: Logger) {
    this.#certificate = new LiveMaterial(user.certificate, clock);
    this.#key = new LiveMaterial(user.key, clock);
    this.#log = log;
  }

  async read(): Promise<ClientCertificate> {
    let id = "";
    try {
      const [certificate, key] = await Promise.all([this.#certificate.read(), this.#key.read()]);
      id = certificateId(certificate, key);
      if (id === this.#good?.id) return this.#good;
      if (this.#good !== undefined && id === this.#badId) return this.#good;
      // The two files are replaced one after the other: in between they do not match.
      createSecureContext({ cert: certificate, key });
      this.#good = { id, certificate, key };
    } catch (error) {
      const where = `${this.#certificate.where} and ${this.#key.where}`;
      if (this.#good === undefined) {
        const message = `Cannot use the client certificate in ${where}: ${messageOf(error)}`;
        throw new CredentialError(message, { cause: error });
      }
      this.#badId = id;
      this.#log.warn("Keeping the current client certificate: its replacement cannot be used", { where, err: error });
    }
    return this.#good;
  }

  doubt(): void {
    this.#certificate.doubt();
    this.#key.doubt();
  }
}

export function certificateId(certificate: Buffer, key: Buffer): string {
  return createHash("sha256").update(certificate).update(key).digest("base64url");
}

/** A bearer token from a file, re-read when it changes; `fallback` serves until the file has been read once. */
export class TokenFile {
  readonly #file: LiveFile;
  #last: string;

  constructor(path: string, fallback: string, clock: Clock) {
    this.#file = new LiveFile(path, clock);
    this.#last = fallback;
  }

  async read(): Promise<string> {
    try {
      const token = (await this.#file.read()).toString("utf8").trim();
      if (token === "") throw new Error("the file is empty");
      this.#last = token;
    } catch (error) {
      if (this.#last === "") {
        throw new CredentialError(`Cannot read the token in ${this.#file.path}: ${messageOf(error)}`, { cause: error });
      }
    }
    return this.#last;
  }

  doubt(): void {
    this.#file.doubt();
  }
}
