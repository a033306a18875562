import type {
  ClusterTrustBundleProjection,
  PodCertificateProjection,
  ProjectedVolumeSource,
  VolumeProjection,
} from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkLabelSelector } from "./labels.ts";
import { dnsSubdomain } from "./names.ts";
import { checkNonReservedPath } from "./paths.ts";
import { checkDownwardFile, checkItems, checkMode } from "./volume-fields.ts";

export function checkProjected(projected: ProjectedVolumeSource, path: string, problems: ProblemList): void {
  checkMode(projected.defaultMode, `${path}.defaultMode`, problems);
  const taken = new Set<string>();
  for (const [index, source] of (projected.sources ?? []).entries()) {
    const at = `${path}.sources[${index}]`;
    const kinds = Object.entries(source).filter(([, value]) => value !== undefined);
    if (kinds.length > 1) problems.forbidden(at, "may not specify more than 1 volume type per source");
    checkSource(source, at, problems);
    for (const target of targetsOf(source)) {
      if (target !== "" && taken.has(target)) problems.invalid(path, target, "conflicting duplicate paths");
      taken.add(target);
    }
  }
}

function checkSource(source: VolumeProjection, path: string, problems: ProblemList): void {
  const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } = source;
  if (secret !== undefined) {
    if (!secret.name) problems.required(`${path}.secret.name`);
    checkItems(secret.items ?? [], `${path}.secret.items`, problems);
  }
  if (configMap !== undefined) {
    if (!configMap.name) problems.required(`${path}.configMap.name`);
    checkItems(configMap.items ?? [], `${path}.configMap.items`, problems);
  }
  for (const [index, item] of (downwardAPI?.items ?? []).entries()) {
    checkDownwardFile(item, `${path}.downwardAPI.items[${index}]`, problems);
  }
  if (serviceAccountToken !== undefined) {
    const { path: target, expirationSeconds = 3600 } = serviceAccountToken;
    const at = `${path}.serviceAccountToken`;
    if (expirationSeconds < 600) {
      problems.invalid(`${at}.expirationSeconds`, expirationSeconds, "may not specify a duration less than 10 minutes");
    }
    if (expirationSeconds > 2 ** 32) {
      problems.invalid(
        `${at}.expirationSeconds`,
        expirationSeconds,
        "may not specify a duration larger than 2^32 seconds",
      );
    }
    if (target === "") problems.required(`${at}.path`);
    else checkNonReservedPath(target, `${at}.path`, problems);
  }
  if (clusterTrustBundle !== undefined) checkTrustBundle(clusterTrustBundle, `${path}.clusterTrustBundle`, problems);
  if (podCertificate !== undefined) checkPodCertificate(podCertificate, `${path}.podCertificate`, problems);
}

/** Paths of the files that this source puts into the volume, as far as the manifest tells. */
function targetsOf(source: VolumeProjection): readonly string[] {
  const { secret, configMap, downwardAPI, serviceAccountToken, clusterTrustBundle, podCertificate } = source;
  return [
    ...(secret?.items ?? []).map(({ path }) => path),
    ...(configMap?.items ?? []).map(({ path }) => path),
    ...(downwardAPI?.items ?? []).map(({ path }) => path),
    serviceAccountToken?.path,
    clusterTrustBundle?.path,
    podCertificate?.credentialBundlePath,
    podCertificate?.keyPath,
    podCertificate?.certificateChainPath,
  ].flatMap((path) => path ?? []);
}

function checkTrustBundle(bundle: ClusterTrustBundleProjection, path: string, problems: ProblemList): void {
  const { name, signerName, labelSelector } = bundle;
  if (name !== undefined && signerName !== undefined) {
    problems.invalid(path, bundle, "only one of name and signerName may be used");
  } else if (name === undefined && signerName === undefined) {
    problems.required(path, "either name or signerName must be specified");
  }
  if (name === "") problems.required(`${path}.name`, "must be a valid object name");
  else if (name !== undefined) {
    for (const detail of dnsSubdomain(name.slice(name.lastIndexOf(":") + 1))) {
      problems.invalid(`${path}.name`, name, `not a valid clustertrustbundlename: ${detail}`);
    }
    if (labelSelector !== undefined) {
      problems.invalid(`${path}.labelSelector`, labelSelector, "labelSelector must be unset if name is specified");
    }
  }
  if (signerName !== undefined) {
    checkSignerName(signerName, `${path}.signerName`, problems);
    checkLabelSelector(labelSelector, `${path}.labelSelector`, problems);
  }
  if (bundle.path === "") problems.required(`${path}.path`);
  else checkNonReservedPath(bundle.path, `${path}.path`, problems);
}

const keyTypes: readonly string[] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const shortestCertificateSeconds = 3600;
const longestCertificateSeconds = 91 * 24 * 3600;

function checkPodCertificate(certificate: PodCertificateProjection, path: string, problems: ProblemList): void {
  const { signerName, keyType, maxExpirationSeconds: seconds } = certificate;
  checkSignerName(signerName, `${path}.signerName`, problems);
  if (!keyTypes.includes(keyType)) problems.unsupported(`${path}.keyType`, keyType, keyTypes);
  if (seconds !== undefined && seconds < shortestCertificateSeconds) {
    problems.invalid(
      `${path}.maxExpirationSeconds`,
      seconds,
      `if provided, maxExpirationSeconds must be >= ${shortestCertificateSeconds}`,
    );
  } else if (seconds !== undefined && seconds > longestCertificateSeconds) {
    problems.invalid(
      `${path}.maxExpirationSeconds`,
      seconds,
      `if provided, maxExpirationSeconds must be <= ${longestCertificateSeconds}`,
    );
  }
  const targets = ["credentialBundlePath", "keyPath", "certificateChainPath"] as const;
  for (const name of targets) {
    const target = certificate[name];
    if (target) checkNonReservedPath(target, `${path}.${name}`, problems);
  }
  if (targets.every((name) => !certificate[name])) {
    problems.required(path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath");
  }
}

function checkSignerName(name: string, path: string, problems: ProblemList): void {
  const [domain = "", signer = "", ...more] = name.split("/");
  if (name === "") problems.required(path, "must be a valid signer name");
  else if (signer === "" || more.length > 0 || !domain.includes(".") || dnsSubdomain(domain).length > 0) {
    problems.invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'");
  }
}
