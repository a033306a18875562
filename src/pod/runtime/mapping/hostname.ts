import type { IdentifiedPod } from "../../../ground/model/index.ts";
import { ConfigError } from "./errors.ts";

const longestLabel = 63;
const longestSubdomain = 253;
const longestKernelName = 64;

export interface PodHostname {
  /** The short name. */
  readonly hostname: string;
  /** Empty when the pod has no name in the cluster's DNS. */
  readonly domain: string;
}

export interface HostnameSettings {
  readonly clusterDomain: string;
  /** The HostnameOverride gate. */
  readonly overrideAllowed: boolean;
}

export function podHostname({ metadata, spec }: IdentifiedPod, settings: HostnameSettings): PodHostname {
  if (settings.overrideAllowed && spec.hostnameOverride !== undefined) {
    refuseUnless(dnsSubdomainProblems(spec.hostnameOverride), "HostnameOverride", spec.hostnameOverride, "subdomain");
    return { hostname: shortened(metadata.name, spec.hostnameOverride), domain: "" };
  }
  if (spec.hostname) refuseUnless(dnsLabelProblems(spec.hostname), "Hostname", spec.hostname, "label");
  const hostname = shortened(metadata.name, spec.hostname || metadata.name);
  if (!spec.subdomain) return { hostname, domain: "" };
  refuseUnless(dnsLabelProblems(spec.subdomain), "Subdomain", spec.subdomain, "label");
  return { hostname, domain: `${spec.subdomain}.${metadata.namespace}.svc.${settings.clusterDomain}` };
}

/** What `hostname` prints inside the pod: the short name, or the full one if the pod asks for it. */
export function kernelHostname(
  { hostname, domain }: PodHostname,
  spec: Pick<IdentifiedPod["spec"], "setHostnameAsFQDN">,
): string {
  if (domain === "" || spec.setHostnameAsFQDN !== true) return hostname;
  const full = `${hostname}.${domain}`;
  if (full.length <= longestKernelName) return full;
  throw new ConfigError(
    `failed to construct FQDN from pod hostname and cluster domain, FQDN ${full} is too long ` +
      `(${longestKernelName} characters is the max, ${full.length} characters requested)`,
  );
}

function shortened(podName: string, hostname: string): string {
  if (hostname.length <= longestLabel) return hostname;
  const cut = hostname.slice(0, longestLabel).replace(/[-.]+$/, "");
  if (cut === "") throw new ConfigError(`hostname for pod "${podName}" was invalid: "${hostname}"`);
  return cut;
}

function refuseUnless(problems: readonly string[], field: string, value: string, form: "label" | "subdomain"): void {
  if (problems.length === 0) return;
  throw new ConfigError(`pod ${field} "${value}" is not a valid DNS ${form}: ${problems.join(";")}`);
}

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function dnsLabelProblems(text: string): readonly string[] {
  const problems: string[] = [];
  if (text.length > longestLabel) problems.push(`must be no more than ${longestLabel} characters`);
  if (!label.test(text)) problems.push(subdomain.test(text) ? "must not contain dots" : labelForm);
  return problems;
}

function dnsSubdomainProblems(text: string): readonly string[] {
  const problems: string[] = [];
  if (text.length > longestSubdomain) problems.push(`must be no more than ${longestSubdomain} characters`);
  if (!subdomain.test(text)) problems.push(subdomainForm);
  return problems;
}

// The API server's words, double space included: users search for them.
const labelForm =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end " +
  "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const subdomainForm =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start " +
  "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
