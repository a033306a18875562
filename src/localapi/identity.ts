import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CertificateAuthority } from "./auth/certificates.ts";
import { TokenSigner } from "./auth/tokens.ts";

/** What makes the server the same one after a restart: clients keep trusting it, and it them. */
export interface ServerIdentity {
  readonly authority: CertificateAuthority;
  readonly tokenKeyPem: string;
  readonly bootstrapToken: string;
}

export async function newIdentity(): Promise<ServerIdentity> {
  return {
    authority: await CertificateAuthority.create("nodelet-local-ca"),
    tokenKeyPem: TokenSigner.newKey(),
    bootstrapToken: `${randomBytes(3).toString("hex")}.${randomBytes(8).toString("hex")}`,
  };
}

/** The identity kept in the directory; a new one when there is none yet. */
export async function keptIdentity(directory: string): Promise<ServerIdentity> {
  const file = join(directory, "identity.json");
  const kept = await readIfThere(file);
  if (kept !== undefined) {
    const { certPem, keyPem, tokenKeyPem, bootstrapToken } = JSON.parse(kept);
    return { authority: new CertificateAuthority({ certPem, keyPem }), tokenKeyPem, bootstrapToken };
  }
  const identity = await newIdentity();
  const { certPem, keyPem } = identity.authority;
  const { tokenKeyPem, bootstrapToken } = identity;
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await writeFile(file, JSON.stringify({ certPem, keyPem, tokenKeyPem, bootstrapToken }), { mode: 0o600, flush: true });
  return identity;
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}
