import { createPrivateKey, webcrypto } from "node:crypto";
import type { IssueOrder } from "../../src/connections/kube/certificates/issue.ts";
import { CertificateAuthority } from "./certificates.ts";
import type { FakeClock } from "./fake-clock.ts";

/** Signs what it is asked to, on the test's clock, once it is allowed to. */
export class FakeSigner {
  readonly orders: IssueOrder[] = [];
  lifetimeMs = 1_000_000;
  /** How far its clock is behind. */
  behindMs = 0;
  /** Undefined: it signs; an error: it refuses with that; "never": nobody decides. */
  answer: Error | "never" | undefined;
  /** Leaves out the names that the request asks for besides its subject. */
  drop = false;
  readonly #clock: FakeClock;
  readonly #authority = CertificateAuthority.create("signer");

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  async issue(order: IssueOrder, signal: AbortSignal): Promise<string> {
    this.orders.push(order);
    if (this.answer === "never") {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
    }
    if (this.answer instanceof Error) throw this.answer;
    return await this.sign(order);
  }

  /** Whole seconds, as certificates count. */
  async sign({ request, usages }: IssueOrder): Promise<string> {
    const from = this.#clock.now() - this.behindMs;
    const validity = { from: new Date(from), to: new Date(from + this.lifetimeMs) };
    const use = usages.includes("server auth") ? "server" : "client";
    const authority = await this.#authority;
    if (!this.drop) return await authority.sign(request, use, validity);
    const { X509CertificateGenerator, Pkcs10CertificateRequest } = await import("@peculiar/x509");
    const { publicKey, subjectName } = new Pkcs10CertificateRequest(request);
    const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
    const secret = createPrivateKey(authority.keyPem).export({ type: "pkcs8", format: "der" });
    const signingKey = await webcrypto.subtle.importKey("pkcs8", secret, algorithm, false, ["sign"]);
    const certificate = await X509CertificateGenerator.create({
      subject: subjectName,
      issuer: "CN=signer",
      notBefore: validity.from,
      notAfter: validity.to,
      publicKey,
      signingKey,
      signingAlgorithm: algorithm,
    });
    return certificate.toString("pem");
  }
}
