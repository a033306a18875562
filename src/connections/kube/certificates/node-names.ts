import { isIP } from "node:net";
import type { NodeAddress } from "../../../ground/model/index.ts";
import { nodeIdentity } from "./bootstrap-at-once.ts";
import type { CertificateTemplate } from "./facts.ts";

/** Whom a serving certificate is to name; undefined while the node has no address that anyone could connect to. */
export function servingTemplate(
  nodeName: string,
  addresses: readonly NodeAddress[],
  { dnsOnly }: { readonly dnsOnly: boolean },
): CertificateTemplate | undefined {
  const dnsNames = new Set<string>();
  const ips = new Set<string>();
  for (const { type, address } of addresses) {
    if (address === "") continue;
    const isAddress = isIP(address) !== 0;
    if (type === "Hostname") (isAddress ? ips : dnsNames).add(address);
    if (type === "InternalDNS" || type === "ExternalDNS") dnsNames.add(address);
    if ((type === "InternalIP" || type === "ExternalIP") && isAddress) ips.add(address);
  }
  const enough = ips.size > 0 || (dnsOnly && dnsNames.size > 0);
  if (!enough) return undefined;
  return { ...nodeIdentity(nodeName), dnsNames: [...dnsNames].toSorted(), ips: [...ips].toSorted() };
}
