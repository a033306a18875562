import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import {
  CertificateAuthority,
  type CertificateSubject,
  type KeyPair,
} from "../../src/beside/localapi/auth/certificates.ts";

export type { CertificateSubject, KeyPair };
export { CertificateAuthority };

/** A directory that goes when the test file ends. */
export function temporaryDirectory(name: string): string {
  const directory = mkdtempSync(join(tmpdir(), `nodelet-${name}-`));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Writes a pair as `<name>.crt` and `<name>.key`. */
export function writePair(directory: string, name: string, { certPem, keyPem }: KeyPair) {
  const certFile = join(directory, `${name}.crt`);
  const keyFile = join(directory, `${name}.key`);
  writeFileSync(certFile, certPem);
  writeFileSync(keyFile, keyPem);
  return { certFile, keyFile };
}
