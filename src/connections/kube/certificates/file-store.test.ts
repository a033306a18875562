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
import { join } from "node:path";
import { before, test } from "node:test";
import {
  CertificateAuthority,
  type KeyPair,
  temporaryDirectory,
  writePair,
} from "../../../../test/support/certificates.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import { CertificateFileStore } from "./file-store.ts";

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
