import { failed, type Judgement, mend, notApplicable, passed, sourceOf } from "../check.ts";
import { type Facts, known, setting, settingText } from "../facts.ts";

/** Those that the benchmark names, and the suites of TLS 1.3, which are all strong. */
const strong = [
  "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
  "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
  "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
  "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
];
const accepted = new Set([
  ...strong,
  ...["TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"],
  ...["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"],
]);

/** By the configuration, and proved by a handshake where somebody listens. */
export function onlyStrongSuites(facts: Facts): Judgement {
  const config = known(facts.config);
  if (settingText(config, "enableServer") === "false") return notApplicable("the node API is not served");
  const version = setting(config, "tlsMinVersion");
  const oldest = String(version.value ?? "") || "VersionTLS12";
  if (oldest === "VersionTLS10" || oldest === "VersionTLS11") {
    const fix = mend(config, version, "VersionTLS12", "tls-min-version");
    return failed(`tlsMinVersion is ${oldest}`, fix, sourceOf(version.origin));
  }
  const suites = setting(config, "tlsCipherSuites");
  const source = sourceOf(suites.origin);
  const fix = mend(config, suites, strong, "tls-cipher-suites");
  const chosen = Array.isArray(suites.value) ? suites.value.map(String) : [];
  const weak = chosen.filter((name) => !accepted.has(name));
  if (oldest !== "VersionTLS13") {
    if (weak.length > 0) return failed(`tlsCipherSuites has ${weak.join(", ")}`, fix, source);
    if (chosen.length === 0) {
      return failed("tlsCipherSuites is not set, so that suites with CBC are offered as well", fix, source);
    }
  }
  return proved(facts, oldest === "VersionTLS13" ? "only TLS 1.3 is spoken" : `${chosen.length} strong suites`, source);
}

function proved(facts: Facts, seen: string, source: ReturnType<typeof sourceOf>): Judgement {
  const serving = "value" in facts.serving ? facts.serving.value : undefined;
  if (serving?.state !== "answers") return passed(seen, source);
  if (serving.problem !== undefined) return passed(`${seen}; ${serving.where} takes no connection yet`, source);
  const agreed = serving.oldVersion ?? serving.weakSuite;
  if (agreed === undefined) return passed(`${seen}; ${serving.where} refused all others`, source);
  return failed(`${seen} by the configuration, but ${serving.where} agreed to ${agreed}`, "restart the agent", source);
}
