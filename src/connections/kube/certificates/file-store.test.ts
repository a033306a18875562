import assert from "node:assert/strict";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import promises from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { before, mock, test } from "node:test";
import {
  CertificateAuthority,
  type KeyPair,
  temporaryDirectory,
  writePair,
} from "../../../../test/support/certificates.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { withoutDescriptors } from "../../../../test/support/without-descriptors.ts";
import { silentLogger, systemClock } from "../../../ground/base/index.ts";
import { CertificateFileStore } from "./file-store.ts";
import { hasValidCertificate } from "./kubeconfig-file.ts";

let pairs: readonly KeyPair[] = [];
before(async () => {
  const authority = await CertificateAuthority.create("authority");
  pairs = await Promise.all(["a", "b", "c"].map((commonName) => authority.issueClient({ commonName })));
});

function fixture(otherwise?: { certFile: string; keyFile: string }) {
  const directory = join(temporaryDirectory("store"), "pki");
  const clock = new FakeClock();
  const make = () =>
    new CertificateFileStore({ directory, prefix: "kubelet-client", otherwise }, { clock, log: silentLogger });
  const save = async (pair: KeyPair | undefined) => make().save(pair?.certPem ?? "", pair?.keyPem ?? "");
  return { directory, clock, make, save };
}

test("keeps every certificate in a file of its own and links to the newest", async () => {
  const { directory, clock, make, save } = fixture();
  assert.equal(await make().read(), undefined);
  await save(pairs[0]);
  await clock.advance(61_000);
  await save(pairs[1]);
  const names = readdirSync(directory).toSorted();
  assert.equal(names.length, 3);
  assert.match(names[0] ?? "", /^kubelet-client-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.pem$/);
  assert.equal(names[2], "kubelet-client-current.pem");
  const target = readlinkSync(make().currentPath);
  assert.equal(target, join(directory, names[1] ?? ""));
  assert.equal(statSync(target).mode & 0o777, 0o600);
  const text = readFileSync(target, "utf8");
  assert.match(text, /^-----BEGIN CERTIFICATE-----[\s\S]+-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+KEY-----\n$/);
  assert.equal((await make().read())?.facts.commonName, "b");
});

test("two certificates within a second: the newer one counts", async () => {
  const { make, save } = fixture();
  await save(pairs[0]);
  await save(pairs[1]);
  assert.equal((await make().read())?.facts.commonName, "b");
});

test("finishes a switch that was cut off", async () => {
  const { directory, make, save } = fixture();
  await save(pairs[0]);
  const target = readlinkSync(make().currentPath);
  rmSync(make().currentPath);
  symlinkSync(target, join(directory, "kubelet-client-updated.pem"));
  assert.equal((await make().read())?.facts.commonName, "a");
  assert.equal(readlinkSync(make().currentPath), target);
});

test("a file where the link should be is not overwritten", async () => {
  const { directory, make, save } = fixture();
  mkdirSync(directory);
  writeFileSync(make().currentPath, "precious");
  await assert.rejects(make().read(), /to be a symlink but it is a file/);
  await assert.rejects(save(pairs[0]), /to be a symlink but it is a file/);
  assert.equal(readFileSync(make().currentPath, "utf8"), "precious");
});

test("a certificate that is not the key's is not kept", async () => {
  const { directory, make } = fixture();
  await assert.rejects(make().save(pairs[0]?.certPem ?? "", pairs[1]?.keyPem ?? ""), /not that of the certificate/);
  assert.throws(() => readdirSync(directory), /ENOENT/);
});

test("looks at the current one first, then where it was told, then at the plain pair", async () => {
  const elsewhere = temporaryDirectory("elsewhere");
  const none: KeyPair = { certPem: "", keyPem: "" };
  const otherwise = writePair(elsewhere, "given", pairs[1] ?? none);
  const { directory, make, save } = fixture(otherwise);
  mkdirSync(directory);
  writePair(directory, "kubelet-client", pairs[2] ?? none);
  assert.equal((await make().read())?.facts.commonName, "b");
  rmSync(otherwise.keyFile);
  assert.equal((await make().read())?.facts.commonName, "c");
  await save(pairs[0]);
  assert.equal((await make().read())?.facts.commonName, "a");
});

test("what can't be read is as good as nothing", async () => {
  const { directory, make } = fixture();
  mkdirSync(directory);
  writeFileSync(join(directory, "broken.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
  symlinkSync(join(directory, "broken.pem"), make().currentPath);
  assert.equal(await make().read(), undefined);
});

test("what can't be read for want of descriptors is still there", async () => {
  const { make, save } = fixture();
  await save(pairs[0]);
  {
    using _ = withoutDescriptors();
    await assert.rejects(make().read(), { code: "EMFILE" });
  }
  assert.equal((await make().read())?.facts.commonName, "a");
});

test("a kubeconfig whose certificate can't be read for want of descriptors is not written anew", async () => {
  const { make, save } = fixture();
  await save(pairs[0]);
  const file = join(temporaryDirectory("kubeconfig"), "kubeconfig");
  writeFileSync(file, kubeconfigFor({ server: "https://127.0.0.1:6443", pemFile: make().currentPath }));
  const ports = { clock: systemClock, log: silentLogger };
  assert.equal(await hasValidCertificate(file, ports), true);
  const readFile = promises.readFile;
  const reading = mock.method(promises, "readFile", async (path: string, ...rest: []) => {
    if (path.endsWith(".pem")) throw Object.assign(new Error("EMFILE"), { code: "EMFILE" });
    return await readFile(path, ...rest);
  });
  syncBuiltinESMExports();
  try {
    await assert.rejects(hasValidCertificate(file, ports), { code: "EMFILE" });
  } finally {
    reading.mock.restore();
    syncBuiltinESMExports();
  }
});

/** A kubeconfig in JSON, which is YAML. */
function kubeconfigFor({ server, pemFile }: { readonly server: string; readonly pemFile: string }): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "c",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user: { "client-certificate": pemFile, "client-key": pemFile } }],
    contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
  });
}
