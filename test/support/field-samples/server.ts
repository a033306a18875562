import type { serverFields } from "../../../src/ground/config/fields/fields-server.ts";
import { count, type FieldSample, minutes, off, on, path, port, word } from "./sample.ts";

export const serverSamples: Record<keyof typeof serverFields, FieldSample> = {
  enableServer: off,
  staticPodPath: path,
  podLogsDir: {
    ...path,
    invalid: [
      ["/a/../b", 'podLogsDir: pod logs path "/a/../b" must be normalized'],
      ["/a//b", "must be normalized"],
      ["/a/", "must be normalized"],
      ["/päth", "must contain ASCII characters only"],
    ],
  },
  syncFrequency: { ...minutes, invalid: [["-1s", "syncFrequency (--sync-frequency) -1s must be greater than 0"]] },
  fileCheckFrequency: minutes,
  httpCheckFrequency: minutes,
  staticPodURL: word,
  staticPodURLHeader: { valid: ["{Accept: [a, b]}", { Accept: ["a", "b"] }] },
  address: { valid: ['"::"', "::"], invalid: [["localhost", 'address (--address) "localhost" must be an IP address']] },
  port: count(port, ["-1", "port (--port) -1 must be between 1 and 65535, inclusive"]),
  readOnlyPort: count(port, ["-1", "readOnlyPort (--read-only-port) -1 must be between 0 and 65535, inclusive"]),
  tlsCertFile: {
    ...path,
    besides: "tlsPrivateKeyFile: /key",
    invalid: [["/cert", "must be given together with tlsPrivateKeyFile", 'tlsPrivateKeyFile: ""']],
  },
  tlsPrivateKeyFile: {
    ...path,
    besides: "tlsCertFile: /cert",
    invalid: [["/key", "must be given together with tlsCertFile", 'tlsCertFile: ""']],
  },
  tlsCipherSuites: {
    valid: ["[TLS_AES_128_GCM_SHA256]", ["TLS_AES_128_GCM_SHA256"]],
    invalid: [["[TLS_X]", "Cipher suite TLS_X not supported or doesn't exist"]],
  },
  tlsMinVersion: {
    valid: ["VersionTLS13", "VersionTLS13"],
    invalid: [["VersionTLS14", 'unknown tls version "VersionTLS14"']],
  },
  rotateCertificates: on,
  serverTLSBootstrap: {
    ...on,
    invalid: [
      [
        "true",
        "requires feature gate RotateKubeletServerCertificate",
        "featureGates: {RotateKubeletServerCertificate: false}",
      ],
    ],
  },
  "authentication.x509.clientCAFile": path,
  "authentication.webhook.enabled": off,
  "authentication.webhook.cacheTTL": minutes,
  "authentication.anonymous.enabled": on,
  "authorization.mode": {
    valid: ["AlwaysAllow", "AlwaysAllow"],
    invalid: [["Never", 'authorization.mode (--authorization-mode) "Never" must be one of: "AlwaysAllow", "Webhook"']],
  },
  "authorization.webhook.cacheAuthorizedTTL": minutes,
  "authorization.webhook.cacheUnauthorizedTTL": minutes,
  enableDebuggingHandlers: off,
  enableContentionProfiling: on,
  enableSystemLogHandler: off,
  enableSystemLogQuery: {
    ...on,
    besides: "featureGates: {NodeLogQuery: true}",
    invalid: [
      ["true", "NodeLogQuery feature gate is required for enableSystemLogQuery", "featureGates: {NodeLogQuery: false}"],
      ["true", "enableSystemLogHandler is required for enableSystemLogQuery", "enableSystemLogHandler: false"],
    ],
  },
  enableProfilingHandler: off,
  enableDebugFlagsHandler: off,
  healthzPort: count(port, ["-1", "healthzPort (--healthz-port) -1 must be between 1 and 65535, inclusive"]),
  healthzBindAddress: word,
  streamingConnectionIdleTimeout: minutes,
};
