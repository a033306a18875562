import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { hasCode, messageOf, savePrivateFile } from "../../ground/base/index.ts";
import { CertificateAuthority } from "./auth/certificates.ts";
import { TokenSigner } from "./auth/token-signer.ts";

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
  // A file without content was begun by a version that could be interrupted there, before anything relied on it.
  if (kept !== undefined && kept.trim() !== "") return readIdentity(file, kept);
  const identity = await newIdentity();
  const { certPem, keyPem } = identity.authority;
  const { tokenKeyPem, bootstrapToken } = identity;
  await savePrivateFile(file, JSON.stringify({ certPem, keyPem, tokenKeyPem, bootstrapToken }));
  return identity;
}

function readIdentity(file: string, text: string): ServerIdentity {
  try {
    const { certPem, keyPem, tokenKeyPem, bootstrapToken } = JSON.parse(text);
    for (const part of [certPem, keyPem, tokenKeyPem, bootstrapToken]) {
      if (typeof part !== "string") throw new Error("a key or certificate is missing");
    }
    return { authority: new CertificateAuthority({ certPem, keyPem }), tokenKeyPem, bootstrapToken };
  } catch (error) {
    const hint = "Bring the file back from a copy; or remove it, and every client needs a new kubeconfig.";
    throw new Error(`The server's keys in ${file} can't be read: ${messageOf(error)}. ${hint}`, { cause: error });
  }
}

async function readIfThere(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
