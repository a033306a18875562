import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { TLSSocket } from "node:tls";
import type { Clock } from "../../../ground/base/index.ts";
import { authenticated, type Identity } from "./identity.ts";

export type CertificateVerdict =
  | { readonly type: "none" }
  | { readonly type: "identity"; readonly identity: Identity }
  | { readonly type: "invalid"; readonly why: string };

/**
 * Who the client's certificate says it is. The handshake has checked chain and purpose against the authorities and
 * noted the result without acting on it; on a long connection only the time can change.
 */
export function certificateVerdict({ socket }: IncomingMessage, clock: Clock): CertificateVerdict {
  if (!(socket instanceof TLSSocket)) return { type: "none" };
  const certificate = socket.getPeerCertificate();
  if (certificate.raw === undefined) return { type: "none" };
  if (!socket.authorized) return { type: "invalid", why: String(socket.authorizationError) };
  if (Date.parse(certificate.valid_to) < clock.now()) return { type: "invalid", why: "the certificate has expired" };
  const { CN, O } = certificate.subject as { CN?: string | string[]; O?: string | string[] };
  const [name] = listOf(CN).slice(-1);
  if (name === undefined || name === "") return { type: "none" };
  const fingerprint = createHash("sha256").update(certificate.raw).digest("hex");
  return {
    type: "identity",
    identity: authenticated({
      name,
      groups: listOf(O),
      extra: { "authentication.kubernetes.io/credential-id": [`X509SHA256=${fingerprint}`] },
    }),
  };
}

function listOf(value: string | string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === "string" ? [value] : value;
}
