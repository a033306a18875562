import { failed, type Judgement, manual, mend, notApplicable, passed, sourceOf, unknown, warned } from "../check.ts";
import { type ConfigFacts, type Facts, known, setting, settingText } from "../facts.ts";
import type { CertificateProgress } from "../gather/agent.ts";
import type { CertificateFact } from "../gather/certificates.ts";
import { inDays } from "./days.ts";

const pendingTooLongMs = 10 * 60_000;

/** 4.2.9: files are named, or the API server signs; what is signed by nobody proves nothing. */
export function servingCertificateIsSet(facts: Facts): Judgement {
  const config = known(facts.config);
  if (settingText(config, "enableServer") === "false") return notApplicable("the node API is not served");
  const bySigner = setting(config, "serverTLSBootstrap");
  const byFile = setting(config, "tlsCertFile");
  const isSigned = bySigner.value === true;
  const hasFile = settingText(config, "tlsCertFile") !== "";
  const isMember = settingText(config, "--kubeconfig") !== "";
  const how = isMember
    ? `${mend(config, bySigner, true, "rotate-server-certificates")}, and approve the request: kubectl certificate approve NAME`
    : "have a certificate signed for this node, and name it and its key in tlsCertFile and tlsPrivateKeyFile";
  if (!isSigned && !hasFile) {
    return failed(
      "neither tlsCertFile nor serverTLSBootstrap is set, so the agent serves a self-signed certificate",
      how,
      sourceOf(byFile.origin),
    );
  }
  const source = sourceOf(isSigned ? bySigner.origin : byFile.origin);
  const certificate = known(facts.certificates).find(({ use }) => use === "serving");
  return judged(certificate, known(facts.ground).now, { isSigned, how, source, nodeName: config.report.nodeName });
}

interface ServingQuestion {
  readonly isSigned: boolean;
  readonly how: string;
  readonly source: ReturnType<typeof sourceOf>;
  readonly nodeName: string;
}

function judged(
  found: CertificateFact | undefined,
  now: number,
  { isSigned, how, source, nodeName }: ServingQuestion,
): Judgement {
  const { content, where = "" } = found ?? {};
  if (content === undefined || content.state === "absent") {
    const fix = isSigned ? "kubectl get csr, then kubectl certificate approve NAME of this node's request" : how;
    return failed(`${where} is not there${isSigned ? ": the API server has not signed one yet" : ""}`, fix, source);
  }
  if (content.state === "unreadable") return unknown(`${where}: ${content.problem}`, "run the doctor as root");
  if (content.state === "unusable") return failed(`${where} can't be used: ${content.problem}`, how, source);
  const [leaf] = content.certificates;
  const { key } = content;
  if (leaf === undefined) return failed(`${where} holds no certificate`, how, source);
  if (leaf.isSelfSigned) return failed(`${where} is self-signed (${leaf.issuer})`, how, source);
  if (leaf.notAfter <= now) return failed(`${where} has expired ${inDays(leaf.notAfter - now)}`, how, source);
  if (leaf.notBefore > now) return failed(`${where} is valid only ${inDays(leaf.notBefore - now)}`, how, source);
  if (key.state === "other") return failed(`the key is not that of ${where}`, how, source);
  if (key.state === "unreadable") return unknown(`the key of ${where}: ${key.problem}`, "run the doctor as root");
  if (key.state === "unusable") return failed(`the key of ${where} can't be used: ${key.problem}`, how, source);
  if (key.state === "matches" && key.file?.state === "there" && (key.file.mode & 0o077) !== 0) {
    return failed(
      `the key in ${key.file.path} can be read by others than its owner`,
      `chmod 600 ${key.file.path}`,
      source,
    );
  }
  const seen = `${isSigned ? "signed through the API server" : "given as a file"}: ${where} for ${leaf.names.join(", ")}, ends ${inDays(leaf.notAfter - now)}`;
  const isNamed = leaf.names.some((name) => name.toLowerCase() === nodeName || /^[\d.]+$|:/.test(name));
  if (!isNamed) return warned(`${seen}; it names neither ${nodeName} nor an address`, how, source);
  return passed(seen, source);
}

/** 4.2.10 */
export function clientCertificateRotates(facts: Facts): Judgement {
  const config = known(facts.config);
  if (settingText(config, "--kubeconfig") === "") return notApplicable("stand-alone: there is no client certificate");
  const found = setting(config, "rotateCertificates");
  const source = sourceOf(found.origin);
  const certificates = "value" in facts.certificates ? facts.certificates.value : [];
  const client = certificates.find(({ use }) => use === "client");
  if (found.value !== true) {
    if (client?.content.state === "unreadable") {
      const seen = `rotateCertificates is false; whether there is a certificate to rotate is not known: ${client.content.problem}`;
      return unknown(seen, "run the doctor as root");
    }
    if (client === undefined && settingText(config, "--bootstrap-kubeconfig") === "") {
      return notApplicable("the kubeconfig proves who the node is by something else than a certificate");
    }
    const fix = mend(config, found, true, "rotate-certificates");
    return failed("rotateCertificates is false", fix, source);
  }
  const now = known(facts.ground).now;
  const progress = progressOf(facts, "client");
  const pending = pendingTooLong(progress, now);
  if (pending !== undefined) return warned(`rotateCertificates is true, but ${pending}`, approve, source);
  return passed(`rotateCertificates is true${renewal(progress, client, now)}`, source);
}

const approve = "kubectl get csr, then kubectl certificate approve NAME of this node's request";

/** 4.2.11 */
export function servingCertificateRotates(facts: Facts): Judgement {
  const config = known(facts.config);
  if (settingText(config, "enableServer") === "false") return notApplicable("the node API is not served");
  if (config.report.gates["RotateKubeletServerCertificate"] === false) {
    const gates = setting(config, "featureGates");
    const source = sourceOf(gates.keyOrigins["RotateKubeletServerCertificate"] ?? gates.origin);
    return failed(
      "the gate RotateKubeletServerCertificate is off",
      "leave RotateKubeletServerCertificate out of featureGates",
      source,
    );
  }
  const found = setting(config, "serverTLSBootstrap");
  const source = sourceOf(found.origin);
  if (found.value !== true) return withoutSigner(config, facts);
  const now = known(facts.ground).now;
  const progress = progressOf(facts, "server");
  const pending = pendingTooLong(progress, now);
  if (pending !== undefined) return warned(`serverTLSBootstrap is true, but ${pending}`, approve, source);
  const certificates = "value" in facts.certificates ? facts.certificates.value : [];
  const serving = certificates.find(({ use }) => use === "serving");
  return passed(`serverTLSBootstrap is true${renewal(progress, serving, now)}`, source);
}

function withoutSigner(config: ConfigFacts, facts: Facts): Judgement {
  const found = setting(config, "serverTLSBootstrap");
  const byFile = setting(config, "tlsCertFile");
  if (settingText(config, "tlsCertFile") !== "") {
    const certificates = "value" in facts.certificates ? facts.certificates.value : [];
    const serving = certificates.find(({ use }) => use === "serving");
    const ends = renewal(undefined, serving, known(facts.ground).now);
    return manual(
      `tlsCertFile is given as a file: whoever writes it renews it${ends}`,
      undefined,
      sourceOf(byFile.origin),
    );
  }
  if (settingText(config, "--kubeconfig") === "") return notApplicable("stand-alone: no API server could sign one");
  const fix = mend(config, found, true, "rotate-server-certificates");
  return failed("serverTLSBootstrap is false", fix, sourceOf(found.origin));
}

function progressOf(facts: Facts, use: "client" | "server"): CertificateProgress | undefined {
  const agent = "value" in facts.agent ? facts.agent.value : undefined;
  return agent?.state === "running" ? agent.self.certificates[use] : undefined;
}

function pendingTooLong(progress: CertificateProgress | undefined, now: number): string | undefined {
  const since = progress?.askingSince;
  if (since === undefined || now - since < pendingTooLongMs) return undefined;
  return `the request for the next certificate has not been signed for ${Math.floor((now - since) / 60_000)} min`;
}

function renewal(progress: CertificateProgress | undefined, found: CertificateFact | undefined, now: number): string {
  const { kept } = progress ?? {};
  if (kept !== undefined) {
    return `; the present one is from ${inDays(kept.notBefore - now)}, the next is due ${inDays(kept.dueAt - now)}`;
  }
  if (found?.content.state !== "usable") return "";
  const [leaf] = found.content.certificates;
  return leaf === undefined ? "" : `; the present one ends ${inDays(leaf.notAfter - now)}`;
}
