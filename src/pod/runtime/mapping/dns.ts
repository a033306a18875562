import { isIPv6 } from "node:net";
import { describePod, type IdentifiedPod, type PodEvent } from "../../../ground/model/index.ts";
import type { DnsSettings, ResolvConf } from "./context.ts";
import { dnsLimits } from "./resolv-conf.ts";

/** Something worth an event, and whom it is about. */
export interface Notice {
  readonly about: "pod" | "node";
  readonly event: PodEvent;
}

export interface PodDns {
  readonly config: ResolvConf;
  readonly notices: readonly Notice[];
}

const clusterOptions = ["ndots:5"];
const nothing: ResolvConf = { nameservers: [], searches: [], options: [] };

/** The resolver settings of a pod, from which the runtime writes its resolv.conf. */
export function podDns(pod: IdentifiedPod, settings: DnsSettings): PodDns {
  const notices: Notice[] = [];
  const base = baseOf(pod, settings, notices);
  const { dnsConfig } = pod.spec;
  const merged: ResolvConf =
    dnsConfig === undefined
      ? base
      : {
          nameservers: unique([...base.nameservers, ...(dnsConfig.nameservers ?? [])]),
          searches: unique([...base.searches, ...(dnsConfig.searches ?? [])]),
          options: mergeOptions(
            base.options,
            (dnsConfig.options ?? []).map(({ name = "", value }) => (value ? `${name}:${value}` : name)),
          ),
        };
  return { config: withinLimits(merged, notices), notices };
}

function baseOf(pod: IdentifiedPod, settings: DnsSettings, notices: Notice[]): ResolvConf {
  const { dnsPolicy, hostNetwork } = pod.spec;
  if (dnsPolicy === "None") return nothing;
  const fromHost = dnsPolicy === "Default" || (dnsPolicy === "ClusterFirst" && hostNetwork === true);
  if (fromHost) return hostBase(settings);
  if (settings.clusterDns.length > 0) return clusterBase(pod, settings);
  const message =
    'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. ' +
    'Falling back to "Default" policy.';
  notices.push(
    { about: "node", event: { type: "Warning", reason: "MissingClusterDNS", message } },
    {
      about: "pod",
      event: { type: "Warning", reason: "MissingClusterDNS", message: `pod: "${describePod(pod)}". ${message}` },
    },
  );
  return hostBase(settings);
}

/** Without resolver settings of its own the node gives pods a local one, so that the runtime does not fill in its own. */
function hostBase({ hostDns, nodeIps }: DnsSettings): ResolvConf {
  if (hostDns !== undefined) return hostDns;
  const local = nodeIps.map((ip) => (isIPv6(ip) ? "::1" : "127.0.0.1"));
  return { nameservers: local.length === 0 ? ["127.0.0.1"] : local, searches: ["."], options: [] };
}

function clusterBase(pod: IdentifiedPod, { clusterDns, clusterDomain, hostDns }: DnsSettings): ResolvConf {
  const hostSearches = hostDns?.searches ?? [];
  const services = `svc.${clusterDomain}`;
  return {
    nameservers: clusterDns,
    searches:
      clusterDomain === ""
        ? hostSearches
        : unique([`${pod.metadata.namespace}.${services}`, services, clusterDomain, ...hostSearches]),
    options: clusterOptions,
  };
}

function mergeOptions(base: readonly string[], extra: readonly string[]): readonly string[] {
  const byName = new Map([...base, ...extra].map((option) => [option.split(":", 1)[0], option]));
  return [...byName.values()];
}

function withinLimits(config: ResolvConf, notices: Notice[]): ResolvConf {
  const nameservers = config.nameservers.slice(0, dnsLimits.nameservers);
  if (nameservers.length < config.nameservers.length) {
    notices.push(
      exceeded(
        `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${nameservers.join(" ")}`,
      ),
    );
  }
  let searches = config.searches
    .slice(0, dnsLimits.searches)
    .filter((domain) => domain.length <= dnsLimits.searchLength);
  while (searches.join(" ").length > dnsLimits.searchLineLength) searches = searches.slice(0, -1);
  if (searches.length < config.searches.length) {
    notices.push(
      exceeded(
        `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(" ")}`,
      ),
    );
  }
  return { nameservers, searches, options: config.options };
}

function exceeded(message: string): Notice {
  return { about: "pod", event: { type: "Warning", reason: "DNSConfigForming", message } };
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
