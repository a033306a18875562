import type { Clock, Logger } from "../../../ground/base/index.ts";
import { CertificateFiles, type ClientCertificate, type Credentials, type Headers, TokenFile } from "./credentials.ts";
import { ExecPlugin } from "./exec-plugin.ts";
import type { ClusterAccess } from "./kubeconfig.ts";

export interface UserCredentialPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string>>;
  readonly authority: () => Promise<Buffer | undefined>;
}

/** The credentials that a kubeconfig's user stands for. */
export class UserCredentials implements Credentials {
  readonly #fixed: Headers;
  readonly #certificate: CertificateFiles | undefined;
  readonly #tokenFile: TokenFile | undefined;
  readonly #plugin: ExecPlugin | undefined;

  constructor(cluster: ClusterAccess, ports: UserCredentialPorts) {
    const { clock, log } = ports;
    const { certificate, token, tokenFile, basic, exec, impersonation } = cluster.user;
    this.#certificate = certificate === undefined ? undefined : new CertificateFiles(certificate, clock, log);
    this.#tokenFile = tokenFile === "" ? undefined : new TokenFile(tokenFile, token, clock);
    this.#plugin = exec === undefined ? undefined : new ExecPlugin(exec, cluster, ports);
    const password = basic && Buffer.from(`${basic.username}:${basic.password}`).toString("base64");
    this.#fixed = {
      ...(token !== "" && bearer(token)),
      ...(password !== undefined && { authorization: `Basic ${password}` }),
      ...impersonation,
    };
  }

  async headers(signal: AbortSignal): Promise<Headers> {
    if (this.#tokenFile !== undefined) return { ...this.#fixed, ...bearer(await this.#tokenFile.read()) };
    const token = (await this.#plugin?.get(signal))?.token ?? "";
    return token === "" ? this.#fixed : { ...this.#fixed, ...bearer(token) };
  }

  async certificate(signal: AbortSignal): Promise<ClientCertificate | undefined> {
    const ofPlugin = (await this.#plugin?.get(signal))?.certificate;
    return ofPlugin ?? (await this.#certificate?.read());
  }

  refused(): boolean {
    this.#tokenFile?.doubt();
    this.#certificate?.doubt();
    this.#plugin?.forget();
    return this.#tokenFile !== undefined || this.#certificate !== undefined || this.#plugin !== undefined;
  }
}

function bearer(token: string): Headers {
  return { authorization: `Bearer ${token}` };
}
