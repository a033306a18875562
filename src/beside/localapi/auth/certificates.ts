import { KeyObject, randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";

export interface KeyPair {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface CertificateSubject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

export interface CertificateToSign extends Required<CertificateSubject> {
  readonly alternativeNames: readonly { readonly type: string; readonly value: string }[];
}

interface Validity {
  readonly from: Date;
  readonly to: Date;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

// TLS looks at the real time even where the server lives on a test's clock, so what the server makes for itself is
// valid from long ago to far ahead.
const always: Validity = { from: new Date("2020-01-01T00:00:00Z"), to: new Date("2099-12-31T23:59:59Z") };

const subjectAlternativeName = "2.5.29.17";

/** The library is large and needed only while certificates are made. */
async function loadLibrary() {
  await import("reflect-metadata");
  return await import("@peculiar/x509");
}

type Library = Awaited<ReturnType<typeof loadLibrary>>;
type Extension = InstanceType<Library["Extension"]>;
type PublicKey = Parameters<Library["X509CertificateGenerator"]["create"]>[0]["publicKey"];

/** Makes certificates in the name of this API server. */
export class CertificateAuthority implements KeyPair {
  readonly certPem: string;
  readonly keyPem: string;

  constructor({ certPem, keyPem }: KeyPair) {
    this.certPem = certPem;
    this.keyPem = keyPem;
  }

  static async create(commonName: string): Promise<CertificateAuthority> {
    const x509 = await loadLibrary();
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const usages = x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign | x509.KeyUsageFlags.digitalSignature;
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      serialNumber: serialNumber(),
      name: nameOf({ commonName }),
      notBefore: always.from,
      notAfter: always.to,
      keys,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(usages, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new CertificateAuthority({ certPem: pemOf(certificate), keyPem: privatePem(keys.privateKey) });
  }

  /** A client certificate for the subject. */
  async issueClient(subject: CertificateSubject): Promise<KeyPair> {
    return await this.#issue(subject, "client", []);
  }

  /** A serving certificate for host names and addresses. */
  async issueServer(subject: CertificateSubject, hosts: readonly string[]): Promise<KeyPair> {
    return await this.#issue(subject, "server", hosts);
  }

  /** Signs a request as it is; the caller has looked at it. */
  async sign(requestPem: string, use: "client" | "server", validity: Validity): Promise<string> {
    const x509 = await loadLibrary();
    const request = new x509.Pkcs10CertificateRequest(requestPem);
    const names = request.getExtension(subjectAlternativeName);
    const extensions = names === null ? [] : [names];
    return await this.#sign(x509, request.publicKey, request.subjectName.toJSON(), use, validity, extensions);
  }

  /** What a signing request asks for; undefined when it is malformed or not signed by its own key. */
  static async readRequest(requestPem: string): Promise<CertificateToSign | undefined> {
    const x509 = await loadLibrary();
    try {
      const request = new x509.Pkcs10CertificateRequest(requestPem);
      if (!(await request.verify())) return undefined;
      const names = request.getExtension(subjectAlternativeName);
      const alternatives = names === null ? [] : new x509.SubjectAlternativeNameExtension(names.rawData).names.toJSON();
      const commonNames = request.subjectName.getField("CN");
      // Readers differ in which of several they believe.
      if (commonNames.length > 1) return undefined;
      return {
        commonName: commonNames[0] ?? "",
        organizations: request.subjectName.getField("O"),
        alternativeNames: alternatives.map(({ type, value }) => ({ type, value: String(value) })),
      };
    } catch {
      return undefined;
    }
  }

  async #issue(subject: CertificateSubject, use: "client" | "server", hosts: readonly string[]): Promise<KeyPair> {
    const x509 = await loadLibrary();
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const names = hosts.map((host) => ({ type: isIP(host) === 0 ? ("dns" as const) : ("ip" as const), value: host }));
    const extensions = names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)];
    const certPem = await this.#sign(x509, keys.publicKey, nameOf(subject), use, always, extensions);
    return { certPem, keyPem: privatePem(keys.privateKey) };
  }

  async #sign(
    x509: Library,
    publicKey: PublicKey,
    subject: Name,
    use: "client" | "server",
    validity: Validity,
    extensions: readonly Extension[],
  ): Promise<string> {
    const issuer = new x509.X509Certificate(this.certPem);
    const signingKey = await webcrypto.subtle.importKey("pkcs8", derOf(this.keyPem), algorithm, false, ["sign"]);
    const extendedUse = use === "client" ? x509.ExtendedKeyUsage.clientAuth : x509.ExtendedKeyUsage.serverAuth;
    const certificate = await x509.X509CertificateGenerator.create({
      serialNumber: serialNumber(),
      subject,
      issuer: issuer.subjectName,
      notBefore: validity.from,
      notAfter: validity.to,
      publicKey,
      signingKey,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([extendedUse]),
        await x509.AuthorityKeyIdentifierExtension.create(issuer),
        ...extensions,
      ],
    });
    return pemOf(certificate);
  }
}

type Name = Record<string, string[]>[];

function nameOf({ commonName, organizations = [] }: CertificateSubject): Name {
  return [...organizations.map((organization) => ({ O: [organization] })), { CN: [commonName] }];
}

function serialNumber(): string {
  // The first bit is clear, so that the number is positive.
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return bytes.toString("hex");
}

function pemOf(certificate: { toString(format: "pem"): string }): string {
  return `${certificate.toString("pem").trim()}\n`;
}

function privatePem(key: webcrypto.CryptoKey): string {
  return KeyObject.from(key).export({ type: "pkcs8", format: "pem" }).toString();
}

function derOf(text: string): Buffer {
  return Buffer.from(text.replace(/-----[^-]+-----/g, ""), "base64");
}
