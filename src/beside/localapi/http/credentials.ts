import type { TLSSocket } from "node:tls";
import type { CertificateIdentity } from "../auth/authenticate.ts";

const known = new WeakMap<object, CertificateIdentity | "none">();

/** Whom the client certificate of a connection names, read once per connection. */
export function certificateOf(socket: TLSSocket): CertificateIdentity | undefined {
  let identity = known.get(socket);
  if (identity === undefined) {
    identity = readCertificate(socket) ?? "none";
    known.set(socket, identity);
  }
  return identity === "none" ? undefined : identity;
}

function readCertificate(socket: TLSSocket): CertificateIdentity | undefined {
  if (!socket.authorized) return undefined;
  const { subject, valid_to: validTo } = socket.getPeerCertificate();
  if (subject === undefined) return undefined;
  const { CN, O } = subject as { readonly CN?: string | readonly string[]; readonly O?: string | readonly string[] };
  const organizations = O === undefined ? [] : typeof O === "string" ? [O] : O;
  const commonName = typeof CN === "string" ? CN : (CN?.[0] ?? "");
  return { commonName, organizations, expiresAtMs: Date.parse(validTo) };
}
