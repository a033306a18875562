import { codeOf, hasCode, table } from "../../../ground/base/index.ts";
import { joinHostPort } from "./url.ts";

// The kubelet's users know, and match on, the words of Go's net package; so these say it the same way.
const errnoWords: Readonly<Record<string, string>> = table({
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset by peer",
  ECONNABORTED: "software caused connection abort",
  EHOSTUNREACH: "no route to host",
  EHOSTDOWN: "host is down",
  ENETUNREACH: "network is unreachable",
  ENETDOWN: "network is down",
  ETIMEDOUT: "connection timed out",
  EADDRNOTAVAIL: "cannot assign requested address",
  EADDRINUSE: "address already in use",
  EAFNOSUPPORT: "address family not supported by protocol",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EPIPE: "broken pipe",
  EINVAL: "invalid argument",
  EMFILE: "too many open files",
  ENFILE: "too many open files in system",
  ENOBUFS: "no buffer space available",
});

const ownLack = ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"];

/**
 * Whether it was the node that had no descriptor, memory or local port left for the connection. That says nothing about
 * the container, which must not be restarted for it: the kubelet counts it as a failure, and a node that is short of
 * descriptors then kills pod after pod.
 */
export function isOwnLack(host: string, error: unknown): boolean {
  if (error instanceof AggregateError && error.errors.length > 0) return isOwnLack(host, error.errors[0]);
  if (hasCode(error, ...ownLack)) return true;
  // Of an IPv6 address it may also say that the node has no IPv6.
  return hasCode(error, "EADDRNOTAVAIL") && !(addressOf(error) ?? host).includes(":");
}

/** Says why connecting to the address failed. */
export function dialErrorText(host: string, port: number, error: unknown): string {
  // Several addresses of one name were tried: the first says enough.
  if (error instanceof AggregateError && error.errors.length > 0) return dialErrorText(host, port, error.errors[0]);
  const code = codeOf(error) ?? "";
  if (code === "ENOTFOUND" || code === "ENODATA") return `dial tcp: lookup ${host}: no such host`;
  if (code === "EAI_AGAIN") return `dial tcp: lookup ${host}: server misbehaving`;
  const address = joinHostPort(addressOf(error) ?? host, port);
  const words = errnoWords[code] ?? (error instanceof Error ? error.message : String(error));
  const call = code === "EMFILE" || code === "ENFILE" || code === "EAFNOSUPPORT" ? "socket" : "connect";
  return `dial tcp ${address}: ${call}: ${words}`;
}

export function dialTimeoutText(host: string, port: number): string {
  return `dial tcp ${joinHostPort(host, port)}: i/o timeout`;
}

/** Both ends of a connection, noted while it was open: a closed socket has forgotten them. */
export interface ConnectionEnds {
  readonly local: string;
  readonly remote: string;
}

/** Says how a connection that had been made broke. */
export function brokenConnectionText(error: unknown, ends: ConnectionEnds | undefined): string {
  const code = codeOf(error) ?? "";
  // Node invents this message when the peer closes before it answered.
  if (error instanceof Error && (error.message === "socket hang up" || error.message === "aborted")) return "EOF";
  const words = errnoWords[code];
  if (words === undefined || ends === undefined) return error instanceof Error ? error.message : String(error);
  const call = code === "EPIPE" ? "write" : "read";
  return `${call} tcp ${ends.local}->${ends.remote}: ${call}: ${words}`;
}

/** Says why a TLS handshake failed. */
export function tlsErrorText(error: unknown, ends: ConnectionEnds | undefined): string {
  if (isPlainHttpAnswer(error)) return "http: server gave HTTP response to HTTPS client";
  if (error instanceof Error && /before secure TLS connection was established/.test(error.message)) return "EOF";
  const reason = error instanceof Error && "reason" in error && typeof error.reason === "string" ? error.reason : "";
  const alert = /^(?:ssl|tls)v\d+ alert (.+)$/.exec(reason)?.[1];
  if (alert !== undefined) return `remote error: tls: ${alert}`;
  return reason === "" ? brokenConnectionText(error, ends) : `tls: ${reason}`;
}

/** OpenSSL took the peer's first bytes for a record header; in practice they are then a plain HTTP answer. */
export function isPlainHttpAnswer(error: unknown): boolean {
  return hasCode(error, "ERR_SSL_WRONG_VERSION_NUMBER");
}

function addressOf(error: unknown): string | undefined {
  return error instanceof Error && "address" in error && typeof error.address === "string" ? error.address : undefined;
}
