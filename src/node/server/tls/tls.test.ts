import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync, renameSync, statSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connect, type PeerCertificate } from "node:tls";
import { CertificateAuthority, temporaryDirectory, writePair } from "../../../../test/support/certificates.ts";
import { TestServer } from "../../../../test/support/node-api.ts";
import { until } from "../../../../test/support/until.ts";
import { silentLogger, systemClock, TaskScope } from "../../../ground/base/index.ts";
import { LiveTls, type LiveTlsFiles } from "./live-tls.ts";
import { servingFiles } from "./serving-files.ts";
import { tlsLimits } from "./tls-options.ts";

const root = temporaryDirectory("tls");
const ports = { clock: systemClock, log: silentLogger };
const unset = { tlsCertFile: "", tlsPrivateKeyFile: "" };

for (const hostName of ["node-1.example", "192.0.2.7"]) {
  test(`a self-signed certificate for ${hostName} is made once, and kept`, async () => {
    const certDir = join(root, hostName, "pki");
    const files = await servingFiles({ ...unset, certDir, hostName }, ports);
    assert.deepEqual(files, { certFile: join(certDir, "kubelet.crt"), keyFile: join(certDir, "kubelet.key") });
    assert.equal(statSync(files.keyFile).mode & 0o777, 0o600);
    const text = readFileSync(files.certFile, "utf8");
    const [leafPem = "", authorityPem = ""] = text.match(/-----BEGIN[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
    const [leaf, authority] = [new X509Certificate(leafPem), new X509Certificate(authorityPem)];
    assert.equal(leaf.checkIssued(authority), true);
    assert.equal(leaf.verify(authority.publicKey), true);
    assert.match(leaf.subject, new RegExp(`^CN=${hostName}@\\d+$`));
    assert.match(authority.subject, new RegExp(`^CN=${hostName}-ca@\\d+$`));
    assert.equal(hostName.startsWith("node") ? leaf.checkHost(hostName) : leaf.checkIP(hostName), hostName);
    assert.deepEqual(leaf.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
    const days = (Date.parse(leaf.validTo) - Date.now()) / 86_400_000;
    assert.ok(days > 364 && days < 366, `valid for ${days} days`);
    assert.ok(Date.parse(leaf.validFrom) < Date.now() - 3_500_000);
    await servingFiles({ ...unset, certDir, hostName }, ports);
    assert.equal(readFileSync(files.certFile, "utf8"), text);
  });
}

test("half a pair is an error that names what is missing; given files are taken as they are", async () => {
  const certDir = temporaryDirectory("half");
  writeFileSync(join(certDir, "kubelet.crt"), "x");
  const made = servingFiles({ ...unset, certDir, hostName: "n" }, ports);
  await assert.rejects(made, /must be supplied as a pair: .*kubelet\.crt is there, .*kubelet\.key is not/);
  const given = { tlsCertFile: "/a.crt", tlsPrivateKeyFile: "/a.key" };
  assert.deepEqual(await servingFiles({ ...given, certDir, hostName: "n" }, ports), {
    certFile: "/a.crt",
    keyFile: "/a.key",
  });
});

/** What certificate a server shows. */
async function shown(port: number): Promise<PeerCertificate> {
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
  try {
    return await new Promise((resolve, reject) => {
      socket.once("secureConnect", () => resolve(socket.getPeerCertificate()));
      socket.once("error", reject);
    });
  } finally {
    socket.destroy();
  }
}

async function serveLive(scope: TaskScope, files: LiveTlsFiles, log = silentLogger): Promise<TestServer> {
  const live = new LiveTls(files, { ...ports, log });
  const limits = tlsLimits("", [], silentLogger);
  const server = await TestServer.start([], {}, { ...limits, ...(await live.read()) });
  scope.spawn("live", (signal) => live.run((material) => server.server.renewTls(material), signal));
  return server;
}

test("a new certificate is served to new connections, also to those without a name; a broken one is not", async () => {
  const directory = temporaryDirectory("live");
  const authority = await CertificateAuthority.create("ca");
  const files = writePair(directory, "tls", await authority.issueServer({ commonName: "first" }, ["127.0.0.1"]));
  await using scope = new TaskScope();
  const complaints: string[] = [];
  const log = { ...silentLogger, error: (message: string) => void complaints.push(message) };
  await using server = await serveLive(scope, { ...files, clientCaFile: "", certificate: "needed" }, log);
  assert.equal((await shown(server.port)).subject.CN, "first");
  writeFileSync(files.certFile, "broken");
  await until("the broken one is noticed", () => complaints.length > 0);
  assert.equal((await shown(server.port)).subject.CN, "first");
  writePair(directory, "tls", await authority.issueServer({ commonName: "second" }, ["127.0.0.1"]));
  await until("the second certificate", async () => (await shown(server.port)).subject.CN === "second");
});

test("files behind a link that is swapped, as in a mounted secret, are noticed", async () => {
  const directory = temporaryDirectory("swap");
  const authority = await CertificateAuthority.create("ca");
  for (const name of ["one", "two"]) {
    writePair(directory, name, await authority.issueServer({ commonName: name }, ["127.0.0.1"]));
  }
  const [certFile, keyFile] = [join(directory, "tls.crt"), join(directory, "tls.key")];
  symlinkSync("one.crt", certFile);
  symlinkSync("one.key", keyFile);
  await using scope = new TaskScope();
  await using server = await serveLive(scope, { certFile, keyFile, clientCaFile: "", certificate: "needed" });
  symlinkSync("two.crt", `${certFile}.new`);
  symlinkSync("two.key", `${keyFile}.new`);
  renameSync(`${certFile}.new`, certFile);
  renameSync(`${keyFile}.new`, keyFile);
  await until("the other certificate", async () => (await shown(server.port)).subject.CN === "two");
});

test("a certificate that is still to come: no handshake succeeds before, all do after", async () => {
  const directory = temporaryDirectory("late");
  const [certFile, keyFile] = [join(directory, "late.crt"), join(directory, "late.key")];
  await using scope = new TaskScope();
  await using server = await serveLive(scope, { certFile, keyFile, clientCaFile: "", certificate: "late" });
  await assert.rejects(shown(server.port));
  const authority = await CertificateAuthority.create("ca");
  writePair(directory, "late", await authority.issueServer({ commonName: "late" }, ["127.0.0.1"]));
  await until("the certificate", async () => (await shown(server.port).catch(() => undefined))?.subject.CN === "late");
});

test("files that do not fit or are missing stop the start with their names", async () => {
  const directory = temporaryDirectory("misfit");
  const authority = await CertificateAuthority.create("ca");
  const one = writePair(directory, "one", await authority.issueServer({ commonName: "one" }, ["127.0.0.1"]));
  const two = writePair(directory, "two", await authority.issueServer({ commonName: "two" }, ["127.0.0.1"]));
  const misfit = { certFile: one.certFile, keyFile: two.keyFile, clientCaFile: "", certificate: "needed" } as const;
  await assert.rejects(new LiveTls(misfit, ports).read(), /one\.crt and .*two\.key are not a certificate and its key/);
  unlinkSync(two.keyFile);
  await assert.rejects(new LiveTls(misfit, ports).read(), /ENOENT.*two\.key/);
  const noCa = { ...one, clientCaFile: two.certFile, certificate: "needed" } as const;
  writeFileSync(two.certFile, "no certificate");
  await assert.rejects(new LiveTls(noCa, ports).read(), /unable to load client CA file .*two\.crt/);
  assert.equal(existsSync(one.certFile), true);
});

test("limits: versions and suites by their names", () => {
  assert.equal(tlsLimits("", [], silentLogger).minVersion, "TLSv1.2");
  assert.equal(tlsLimits("VersionTLS13", [], silentLogger).minVersion, "TLSv1.3");
  assert.match(tlsLimits("VersionTLS10", [], silentLogger).ciphers, /:@SECLEVEL=0$/);
  const warned: unknown[] = [];
  const log = { ...silentLogger, warn: (message: string, fields?: object) => warned.push([message, fields]) };
  const suites = ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_AES_128_GCM_SHA256"];
  assert.equal(
    tlsLimits("", suites, log).ciphers,
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:ECDHE-RSA-CHACHA20-POLY1305:AES128-SHA",
  );
  assert.deepEqual(warned, [["Use of insecure cipher detected.", { cipher: "TLS_RSA_WITH_AES_128_CBC_SHA" }]]);
});

for (const [what, minVersion, suites, client, succeeds] of [
  ["TLS 1.2 by default", "", [], { maxVersion: "TLSv1.2" }, true],
  ["no TLS 1.1 by default", "", [], { maxVersion: "TLSv1.1", minVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" }, false],
  [
    "TLS 1.1 when asked for",
    "VersionTLS11",
    [],
    { maxVersion: "TLSv1.1", minVersion: "TLSv1.1", ciphers: "ALL@SECLEVEL=0" },
    true,
  ],
  ["no TLS 1.2 with 1.3", "VersionTLS13", [], { maxVersion: "TLSv1.2" }, false],
  ["TLS 1.3 with 1.3", "VersionTLS13", ["TLS_RSA_WITH_AES_128_CBC_SHA"], {}, true],
  [
    "only the chosen suite",
    "",
    ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
    { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES128-GCM-SHA256" },
    false,
  ],
  [
    "the chosen suite",
    "",
    ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"],
    { maxVersion: "TLSv1.2", ciphers: "ECDHE-ECDSA-AES256-GCM-SHA384" },
    true,
  ],
] as const) {
  test(`handshake: ${what}`, async () => {
    const authority = await CertificateAuthority.create("ca");
    const { certPem: cert, keyPem: key } = await authority.issueServer({ commonName: "n" }, ["127.0.0.1"]);
    await using server = await TestServer.start([], {}, { cert, key, ...tlsLimits(minVersion, suites, silentLogger) });
    const answer = server.ask("/", { client });
    if (succeeds) assert.equal((await answer).status, 404);
    else await assert.rejects(answer);
  });
}
