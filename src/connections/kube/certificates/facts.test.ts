import assert from "node:assert/strict";
import { before, test } from "node:test";
import { CertificateAuthority, type KeyPair } from "../../../../test/support/certificates.ts";
import { covers, keptCertificate } from "./facts.ts";

let authority: CertificateAuthority;
let pair: KeyPair;
before(async () => {
  authority = await CertificateAuthority.create("authority");
  pair = await authority.issueServer({ commonName: "system:node:n", organizations: ["system:nodes"] }, [
    "n",
    "n.example",
    "10.0.0.1",
    "fd00::1",
  ]);
});

test("a certificate tells whom it names and until when it is good", () => {
  const { facts } = keptCertificate(pair.certPem, pair.keyPem);
  assert.deepEqual(facts, {
    commonName: "system:node:n",
    organizations: ["system:nodes"],
    dnsNames: ["n", "n.example"],
    ips: ["10.0.0.1", "fd00::1"],
    notBefore: Date.parse("2020-01-01T00:00:00Z"),
    notAfter: Date.parse("2099-12-31T23:59:59Z"),
  });
});

test("certificate, authority and key may stand in one file", async () => {
  const whole = `${pair.certPem}${authority.certPem}${pair.keyPem}`;
  const kept = keptCertificate(whole, whole);
  assert.equal(kept.certificate.match(/BEGIN CERTIFICATE/g)?.length, 2);
  assert.equal(kept.facts.commonName, "system:node:n");
  assert.ok(!kept.certificate.includes("PRIVATE"));
});

test("what is no certificate with its key is refused", async () => {
  const other = await authority.issueClient({ commonName: "other" });
  assert.throws(() => keptCertificate("", pair.keyPem), /no certificate/);
  assert.throws(() => keptCertificate(pair.certPem, "nothing"), /no private key/);
  assert.throws(() => keptCertificate(pair.certPem, other.keyPem), /not that of the certificate/);
});

for (const [name, change, fits] of [
  ["the same", {}, true],
  ["fewer names", { dnsNames: [], ips: ["10.0.0.1"] }, true],
  ["an address written in full", { ips: ["FD00:0:0:0:0:0:0:1"] }, true],
  ["another address", { ips: ["10.0.0.2"] }, false],
  ["another name", { dnsNames: ["m"] }, false],
  ["another node", { commonName: "system:node:m" }, false],
  ["another group", { organizations: ["system:masters"] }, false],
] as const) {
  test(`a certificate ${fits ? "covers" : "does not cover"} ${name}`, () => {
    const { facts } = keptCertificate(pair.certPem, pair.keyPem);
    assert.equal(covers(facts, { ...facts, ...change }), fits);
  });
}
