import { type Clock, waitFor } from "../../../ground/base/index.ts";
import { type ClientCertificate, CredentialError, type Credentials, certificateId } from "../access/index.ts";
import type { KeptCertificate } from "./facts.ts";
import type { CertificateRotation } from "./rotation.ts";

/** How long a request waits for the first certificate before it is given up. */
const patienceMs = 10_000;

/** We are who the managed certificate says, and nobody without one. */
export class ManagedCredentials implements Credentials {
  readonly #manager: CertificateRotation;
  readonly #clock: Clock;
  #shown: { readonly kept: KeptCertificate; readonly certificate: ClientCertificate } | undefined;

  constructor(manager: CertificateRotation, clock: Clock) {
    this.#manager = manager;
    this.#clock = clock;
  }

  async headers(): Promise<Record<string, string>> {
    return {};
  }

  async certificate(signal: AbortSignal): Promise<ClientCertificate> {
    if (this.#manager.current === undefined) await this.#arrival(signal);
    const kept = this.#manager.current;
    if (kept === undefined) {
      const what = this.#manager.hasExpired
        ? "the client certificate has expired"
        : "there is no client certificate yet";
      throw new CredentialError(`Cannot authenticate to the API server: ${what}, and none has been issued`);
    }
    if (this.#shown?.kept !== kept) {
      const [certificate, key] = [Buffer.from(kept.certificate), Buffer.from(kept.key)];
      this.#shown = { kept, certificate: { id: certificateId(certificate, key), certificate, key } };
    }
    return this.#shown.certificate;
  }

  refused(): boolean {
    return false;
  }

  /** Resolves when a certificate has come, or when it is no use to wait longer. */
  #arrival(signal: AbortSignal): Promise<void> {
    return waitFor(signal, (done) => {
      const stop = this.#manager.onChange(done);
      const timer = this.#clock.after(patienceMs, done);
      return () => {
        stop();
        timer.cancel();
      };
    });
  }
}
