import { createPrivateKey, X509Certificate } from "node:crypto";
import { isIPv6, SocketAddress } from "node:net";

/** Whom a certificate is to name. */
export interface CertificateTemplate {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  readonly ips: readonly string[];
}

/** What a certificate says: whom it names, and when it is valid, in milliseconds since 1970. */
export interface CertificateFacts extends CertificateTemplate {
  readonly notBefore: number;
  readonly notAfter: number;
}

/** A certificate with its key, as PEM, and what the certificate says. */
export interface KeptCertificate {
  /** The leaf first, then its intermediates. */
  readonly certificate: string;
  readonly key: string;
  readonly facts: CertificateFacts;
}

const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const keyBlock = /-----BEGIN ([A-Z]+ )?PRIVATE KEY-----[^-]+-----END ([A-Z]+ )?PRIVATE KEY-----/;

/** The certificates in the text, each as PEM. */
export function certificatesIn(text: string): readonly string[] {
  return text.match(certificateBlock) ?? [];
}

/** Rejects texts that are not a certificate and its own key; both may stand in one text. */
export function keptCertificate(certificateText: string, keyText: string): KeptCertificate {
  const blocks = certificatesIn(certificateText);
  const [leaf] = blocks;
  const key = keyBlock.exec(keyText)?.[0];
  if (leaf === undefined) throw new Error("found no certificate, want at least one PEM block of that kind");
  if (key === undefined) throw new Error("found no private key, want a PEM block of that kind");
  const parsed = new X509Certificate(leaf);
  if (!parsed.checkPrivateKey(createPrivateKey(key))) throw new Error("the private key is not that of the certificate");
  return { certificate: `${blocks.join("\n")}\n`, key: `${key}\n`, facts: factsOf(parsed) };
}

function factsOf(certificate: X509Certificate): CertificateFacts {
  const subject: Readonly<Record<string, unknown>> = { ...certificate.toLegacyObject().subject };
  const names = (certificate.subjectAltName ?? "").split(", ");
  const named = (prefix: string): readonly string[] =>
    names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
  return {
    commonName: texts(subject["CN"])[0] ?? "",
    organizations: texts(subject["O"]),
    dnsNames: named("DNS:"),
    ips: named("IP Address:").map(normalAddress),
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
  };
}

/** Whether the certificate names everything that the template does; more does no harm. */
export function covers(facts: CertificateTemplate, template: CertificateTemplate): boolean {
  const has = (there: readonly string[], wanted: readonly string[]): boolean =>
    wanted.every((name) => there.includes(name));
  return (
    facts.commonName === template.commonName &&
    has(facts.organizations, template.organizations) &&
    has(facts.dnsNames, template.dnsNames) &&
    has(facts.ips, template.ips.map(normalAddress))
  );
}

function texts(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return Array.isArray(value) ? value.map(String) : [];
}

/** OpenSSL writes IPv6 addresses in full; Kubernetes does not. */
function normalAddress(ip: string): string {
  return isIPv6(ip) ? new SocketAddress({ address: ip, family: "ipv6" }).address : ip;
}
