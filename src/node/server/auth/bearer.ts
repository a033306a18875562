import type { IncomingMessage } from "node:http";

/** Browsers cannot set headers on a WebSocket, so there the token comes as one of the sub-protocols. */
const tokenProtocol = "base64url.bearer.authorization.k8s.io.";

export type BearerToken =
  | { readonly type: "none" }
  | { readonly type: "token"; readonly token: string }
  /** There is one, but not in a form that can be used. */
  | { readonly type: "invalid"; readonly why: string };

export function bearerToken({ headers }: IncomingMessage): BearerToken {
  const [scheme = "", token = ""] = (headers.authorization ?? "").trim().split(/ +/);
  if (scheme.toLowerCase() === "bearer" && token !== "") return { type: "token", token };
  if (headers.upgrade?.toLowerCase() !== "websocket") return { type: "none" };
  return protocolToken(protocolsOf(headers["sec-websocket-protocol"]));
}

function protocolToken(protocols: readonly string[]): BearerToken {
  const [encoded, ...more] = protocols.filter((protocol) => protocol.startsWith(tokenProtocol));
  if (encoded === undefined) return { type: "none" };
  if (more.length > 0) return { type: "invalid", why: "multiple base64.bearer.authorization tokens specified" };
  if (protocols.length === 1) return { type: "invalid", why: "missing additional subprotocol" };
  const text = encoded.slice(tokenProtocol.length);
  const token = Buffer.from(text, "base64url").toString();
  if (!/^[A-Za-z0-9_-]+$/.test(text) || token === "") {
    return { type: "invalid", why: "invalid base64.bearer.authorization token encoding" };
  }
  return { type: "token", token };
}

/** The value of a Sec-WebSocket-Protocol header without the token, which is nobody else's business. */
export function withoutToken(header: string): string {
  return protocolsOf(header)
    .filter((protocol) => !protocol.startsWith(tokenProtocol))
    .join(", ");
}

function protocolsOf(header: string | undefined): readonly string[] {
  return (header ?? "")
    .split(",")
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== "");
}
