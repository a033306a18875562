import { formatDuration } from "../../base/index.ts";
import { label } from "../fields/fields.ts";
import { isAddress } from "../flags/flag-kinds.ts";
import { type RuleContext, shown, words } from "./rule-context.ts";

/** Servers, TLS, authentication, static pods, logs directory. */
export function checkServer(context: RuleContext): void {
  checkTls(context);
  checkLogQuery(context);
  checkPodLogsDir(context);
  checkStandalone(context);
  const { config, invalid } = context;
  if (config.syncFrequencyMs <= 0) {
    invalid(
      "syncFrequency",
      `${label("syncFrequency")} ${formatDuration(config.syncFrequencyMs)} must be greater than 0`,
    );
  }
  if (!isAddress(config.address)) {
    invalid("address", `${label("address")} ${shown(config.address)} must be an IP address`);
  }
}

const tlsVersions = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"];

const ecdhe = (suite: string): string[] => [`TLS_ECDHE_ECDSA_WITH_${suite}`, `TLS_ECDHE_RSA_WITH_${suite}`];

/** Names Go's TLS library knows, the safe ones and those it calls insecure. */
const cipherSuites: readonly string[] = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  ...ecdhe("AES_128_CBC_SHA"),
  ...ecdhe("AES_256_CBC_SHA"),
  ...ecdhe("AES_128_GCM_SHA256"),
  ...ecdhe("AES_256_GCM_SHA384"),
  ...ecdhe("CHACHA20_POLY1305_SHA256"),
  ...ecdhe("CHACHA20_POLY1305"),
];

export const insecureCipherSuites: readonly string[] = [
  ...ecdhe("AES_128_CBC_SHA256"),
  ...ecdhe("RC4_128_SHA"),
  "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
  "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
  "TLS_RSA_WITH_AES_128_CBC_SHA",
  "TLS_RSA_WITH_AES_128_CBC_SHA256",
  "TLS_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_RSA_WITH_AES_256_CBC_SHA",
  "TLS_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_RSA_WITH_RC4_128_SHA",
];

function checkTls({ config, invalid, isOn }: RuleContext): void {
  if (config.tlsMinVersion !== "" && !tlsVersions.includes(config.tlsMinVersion)) {
    const rule = `must be one of: ${words(tlsVersions)}`;
    invalid("tlsMinVersion", `unknown tls version ${shown(config.tlsMinVersion)}: ${label("tlsMinVersion")} ${rule}`);
  }
  for (const suite of config.tlsCipherSuites) {
    if (cipherSuites.includes(suite) || insecureCipherSuites.includes(suite)) continue;
    invalid("tlsCipherSuites", `${label("tlsCipherSuites")}: Cipher suite ${suite} not supported or doesn't exist`);
  }
  if (config.serverTLSBootstrap && !isOn("RotateKubeletServerCertificate")) {
    invalid(
      "serverTLSBootstrap",
      `${label("serverTLSBootstrap")} true requires feature gate RotateKubeletServerCertificate`,
    );
  }
  const [certificate, key] = [config.tlsCertFile, config.tlsPrivateKeyFile];
  if ((certificate === "") !== (key === "")) {
    const [set, missing] =
      certificate === ""
        ? (["tlsPrivateKeyFile", "tlsCertFile"] as const)
        : (["tlsCertFile", "tlsPrivateKeyFile"] as const);
    invalid(set, `${label(set)} ${shown(config[set])} must be given together with ${label(missing)}`);
  }
}

function checkLogQuery({ config, invalid, isOn }: RuleContext): void {
  if (!config.enableSystemLogQuery) return;
  if (!isOn("NodeLogQuery")) {
    invalid(
      "enableSystemLogQuery",
      "enableSystemLogQuery true: NodeLogQuery feature gate is required for enableSystemLogQuery",
    );
  }
  if (!config.enableSystemLogHandler) {
    invalid(
      "enableSystemLogQuery",
      "enableSystemLogQuery true: enableSystemLogHandler is required for enableSystemLogQuery",
    );
  }
}

function checkPodLogsDir({ config, invalid }: RuleContext): void {
  const path = config.podLogsDir;
  const wrong = (rule: string): void => invalid("podLogsDir", `podLogsDir: pod logs path ${shown(path)} ${rule}`);
  if (path === "") wrong("must not be empty");
  else {
    if (!path.startsWith("/")) wrong("must be absolute path");
    if (!isClean(path)) wrong("must be normalized");
    if (!/^[\0-\x7f]*$/.test(path)) wrong("must contain ASCII characters only");
  }
}

function isClean(path: string): boolean {
  if (path === "/") return true;
  const segments = path.replace(/^\//, "").split("/");
  return segments.every((segment) => segment !== "" && segment !== "." && segment !== "..");
}

/** Without an API server there is nobody to ask who a caller is. */
function checkStandalone({ config, flags, invalid }: RuleContext): void {
  if (flags.kubeconfig !== "" || !config.enableServer) return;
  const remedy = "give --kubeconfig, or set";
  if (config.authentication.webhook.enabled) {
    const path = "authentication.webhook.enabled";
    invalid(path, `${label(path)} true: no client provided, cannot use webhook authentication; ${remedy} it to false`);
  }
  if (config.authorization.mode === "Webhook") {
    const path = "authorization.mode";
    invalid(
      path,
      `${label(path)} "Webhook": no client provided, cannot use webhook authorization; ${remedy} it to "AlwaysAllow"`,
    );
  }
}
