import { type Clock, FieldReader, isAbort, messageOf, runProgram, SharedWork } from "../../../ground/base/index.ts";
import { type ClientCertificate, CredentialError, certificateId } from "./credentials.ts";
import type { ClusterAccess } from "./kubeconfig.ts";
import type { ExecPluginSettings } from "./kubeconfig-user.ts";

export interface ExecCredential {
  /** Empty for none. */
  readonly token: string;
  readonly certificate: ClientCertificate | undefined;
  /** Wall-clock milliseconds; undefined: good until the server refuses it. */
  readonly expiresAt: number | undefined;
}

export interface ExecPluginPorts {
  readonly clock: Clock;
  /** The environment that the plugin inherits. */
  readonly environment: Readonly<Record<string, string>>;
  /** PEM of the cluster's certificate authority, for a plugin that asks for cluster information. */
  readonly authority: () => Promise<Buffer | undefined>;
}

/**
 * An answer is used for so long even if it has expired: by a clock that is wrong each would have, and a program would be
 * started for every request. What the server refuses is forgotten at once.
 */
const shortestUseMs = 10_000;

/** Asks a program who we are, and remembers the answer until it expires or is refused. */
export class ExecPlugin {
  readonly #settings: ExecPluginSettings;
  readonly #cluster: ClusterAccess;
  readonly #ports: ExecPluginPorts;
  readonly #asking = new SharedWork<"ask", ExecCredential>();
  #cached: { readonly credential: ExecCredential; readonly since: number } | undefined;

  constructor(settings: ExecPluginSettings, cluster: ClusterAccess, ports: ExecPluginPorts) {
    this.#settings = settings;
    this.#cluster = cluster;
    this.#ports = ports;
  }

  async get(signal: AbortSignal): Promise<ExecCredential> {
    const { clock } = this.#ports;
    if (this.#cached !== undefined) {
      const { credential, since } = this.#cached;
      const { expiresAt = Number.POSITIVE_INFINITY } = credential;
      if (clock.now() < expiresAt || clock.monotonic() - since < shortestUseMs) return credential;
    }
    const fresh = await this.#asking.join("ask", (shared) => this.#ask(shared), signal);
    this.#cached = { credential: fresh, since: clock.monotonic() };
    return fresh;
  }

  forget(): void {
    this.#cached = undefined;
  }

  async #ask(signal: AbortSignal): Promise<ExecCredential> {
    const { command, args, env, installHint } = this.#settings;
    const { clock, environment } = this.#ports;
    const info = JSON.stringify(await this.#request());
    let answer: string;
    try {
      answer = await runProgram(
        { program: command, args, env: { ...environment, ...env, KUBERNETES_EXEC_INFO: info }, input: "" },
        clock,
        signal,
      );
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const hint = installHint.trim() === "" ? "" : `\n${installHint.trim()}`;
      throw new CredentialError(`The credential plugin ${command} ${messageOf(error)}${hint}`, { cause: error });
    }
    const problems: string[] = [];
    const credential = this.#decode(answer, problems);
    if (credential === undefined) {
      throw new CredentialError(`The credential plugin ${command} gave an unusable answer: ${problems.join("; ")}`);
    }
    return credential;
  }

  async #request(): Promise<unknown> {
    const { apiVersion, provideClusterInfo } = this.#settings;
    const spec = { interactive: false, ...(provideClusterInfo && { cluster: await this.#clusterInfo() }) };
    return { kind: "ExecCredential", apiVersion, spec };
  }

  async #clusterInfo(): Promise<unknown> {
    const { server, tlsServerName, trust, proxyUrl, execExtension } = this.#cluster;
    const authority = await this.#ports.authority();
    return {
      server: server.href.replace(/\/$/, ""),
      ...(tlsServerName !== "" && { "tls-server-name": tlsServerName }),
      ...(trust.type === "anyone" && { "insecure-skip-tls-verify": true }),
      ...(authority !== undefined && { "certificate-authority-data": authority.toString("base64") }),
      ...(proxyUrl !== undefined && { "proxy-url": proxyUrl.href }),
      ...(execExtension !== undefined && { config: execExtension }),
    };
  }

  /** The problems name fields only: the answer holds secrets. */
  #decode(text: string, problems: string[]): ExecCredential | undefined {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      problems.push("it is not JSON");
      return undefined;
    }
    const answer = FieldReader.of(value, "", problems);
    for (const [field, wanted] of [
      ["kind", "ExecCredential"],
      ["apiVersion", this.#settings.apiVersion],
    ] as const) {
      const found = answer.string(field);
      if (found !== wanted) problems.push(`${field}: found ${JSON.stringify(found)}, want ${JSON.stringify(wanted)}`);
    }
    const status = answer.object("status");
    const token = status.string("token");
    const certificate = Buffer.from(status.string("clientCertificateData"));
    const key = Buffer.from(status.string("clientKeyData"));
    const expiry = status.string("expirationTimestamp");
    const expiresAt = expiry === "" ? undefined : Date.parse(expiry);
    if (Number.isNaN(expiresAt)) problems.push("status.expirationTimestamp: want a time such as 2026-01-02T15:04:05Z");
    if ((certificate.length === 0) !== (key.length === 0)) {
      problems.push("status: found only one of clientCertificateData and clientKeyData, want both or neither");
    }
    if (token === "" && certificate.length === 0) {
      problems.push("status: found neither a token nor a client certificate");
    }
    if (problems.length > 0) return undefined;
    const pair = { id: certificateId(certificate, key), certificate, key };
    return { token, certificate: certificate.length === 0 ? undefined : pair, expiresAt };
  }
}
