import { headersKind, ipKind } from "../flags/flag-kinds.ts";
import { headersField } from "./field-kinds.ts";
import { between, bool, duration, field, int32, oneOf, strings, text } from "./field-spec.ts";

/** The agent's servers, who may use them, and the pods that do not come from the API. */
export const serverFields = {
  enableServer: bool(true, "Serve the HTTPS API of the node.", { flag: "enable-server", pointer: true }),
  staticPodPath: text("", "File or directory of static pods; names that start with a dot are ignored.", {
    flag: "pod-manifest-path",
    isPath: true,
  }),
  podLogsDir: text("/var/log/pods", "Directory of the pods' log files.", { isPath: true }),
  syncFrequency: duration(60_000, "Longest time between two syncs of a pod.", { flag: "sync-frequency" }),
  fileCheckFrequency: duration(20_000, "Time between two listings of the static pod files.", {
    flag: "file-check-frequency",
  }),
  httpCheckFrequency: duration(20_000, "Time between two requests to the static pod URL.", {
    flag: "http-check-frequency",
  }),
  staticPodURL: text("", "URL that answers with a Pod or PodList to run.", { flag: "manifest-url" }),
  staticPodURLHeader: field(headersField, headersKind, {}, "HTTP headers for the static pod URL, name:value,...", {
    flag: "manifest-url-header",
  }),
  address: text("0.0.0.0", "IP address the servers listen on; 0.0.0.0 or :: for all.", {
    flag: "address",
    flagKind: ipKind,
  }),
  port: int32(10250, "Port of the HTTPS API.", { flag: "port", check: between(1, 65535) }),
  readOnlyPort: int32(0, "Port of the API without authentication; 0 is off.", {
    flag: "read-only-port",
    legacy: 10255,
    check: between(0, 65535),
  }),
  tlsCertFile: text("", "Serving certificate, followed by its chain.", { flag: "tls-cert-file", isPath: true }),
  tlsPrivateKeyFile: text("", "Private key of the serving certificate.", {
    flag: "tls-private-key-file",
    isPath: true,
  }),
  tlsCipherSuites: strings([], "Cipher suites for TLS 1.2 and older.", { flag: "tls-cipher-suites" }),
  tlsMinVersion: text("", "Lowest TLS version; empty means VersionTLS12.", { flag: "tls-min-version" }),
  rotateCertificates: bool(false, "Renew the client certificate before it expires.", { flag: "rotate-certificates" }),
  serverTLSBootstrap: bool(false, "Ask the API server for the serving certificate.", {
    flag: "rotate-server-certificates",
  }),
  "authentication.x509.clientCAFile": text("", "Authorities whose client certificates identify a caller.", {
    flag: "client-ca-file",
    isPath: true,
  }),
  "authentication.webhook.enabled": bool(true, "Check bearer tokens with the TokenReview API.", {
    flag: "authentication-token-webhook",
    legacy: false,
    pointer: true,
  }),
  "authentication.webhook.cacheTTL": duration(120_000, "How long a token's answer is remembered.", {
    flag: "authentication-token-webhook-cache-ttl",
  }),
  "authentication.anonymous.enabled": bool(false, "Let requests in that carry no credentials.", {
    flag: "anonymous-auth",
    legacy: true,
    pointer: true,
  }),
  "authorization.mode": text("Webhook", "Who may do what: AlwaysAllow, or ask with Webhook.", {
    flag: "authorization-mode",
    legacy: "AlwaysAllow",
    check: oneOf(["AlwaysAllow", "Webhook"]),
  }),
  "authorization.webhook.cacheAuthorizedTTL": duration(300_000, "How long a yes is remembered.", {
    flag: "authorization-webhook-cache-authorized-ttl",
  }),
  "authorization.webhook.cacheUnauthorizedTTL": duration(30_000, "How long a no is remembered.", {
    flag: "authorization-webhook-cache-unauthorized-ttl",
  }),
  enableDebuggingHandlers: bool(true, "Serve logs, exec, attach, port-forward and /configz.", {
    flag: "enable-debugging-handlers",
    pointer: true,
  }),
  enableContentionProfiling: bool(false, "Profile blocking, where profiling is on.", { flag: "contention-profiling" }),
  enableSystemLogHandler: bool(true, "Serve files below /var/log on /logs/.", { pointer: true }),
  enableSystemLogQuery: bool(false, "Answer queries on /logs/; needs the gate NodeLogQuery.", { pointer: true }),
  enableProfilingHandler: bool(true, "Serve /debug/pprof/.", { pointer: true }),
  enableDebugFlagsHandler: bool(true, "Serve /debug/flags/v.", { pointer: true }),
  healthzPort: int32(10248, "Port of the local health check; 0 is off.", {
    flag: "healthz-port",
    pointer: true,
    check: {
      rule: "must be between 1 and 65535, inclusive, or 0 to switch it off",
      ok: (value) => value >= 0 && value <= 65535,
    },
  }),
  healthzBindAddress: text("127.0.0.1", "IP address of the local health check.", {
    flag: "healthz-bind-address",
    flagKind: ipKind,
  }),
  streamingConnectionIdleTimeout: duration(14_400_000, "Accepted; has no effect.", {
    flag: "streaming-connection-idle-timeout",
  }),
} as const;
