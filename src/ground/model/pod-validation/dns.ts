import { isIP } from "node:net";
import type { HostAlias, PodSpec } from "../kube/gen/types.ts";
import type { ProblemList } from "../problem.ts";
import { checkRequiredChoice } from "./container.ts";
import { dnsSubdomain } from "./names.ts";

const dnsPolicies: readonly string[] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
// Limits of the C library's resolver.
const mostNameservers = 3;
const mostSearchPaths = 32;
const longestSearchList = 2048;

export function checkDns({ dnsPolicy = "", dnsConfig }: PodSpec, problems: ProblemList): void {
  checkRequiredChoice(dnsPolicy, dnsPolicies, "spec.dnsPolicy", problems);
  const path = "spec.dnsConfig";
  const { nameservers = [], searches = [], options = [] } = dnsConfig ?? {};
  if (dnsPolicy === "None") {
    if (dnsConfig === undefined) {
      problems.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
    } else if (nameservers.length === 0) {
      problems.required(`${path}.nameservers`, "must provide at least one DNS nameserver when `dnsPolicy` is None");
    }
  }
  if (nameservers.length > mostNameservers) {
    problems.invalid(`${path}.nameservers`, nameservers, `must not have more than ${mostNameservers} nameservers`);
  }
  for (const [index, server] of nameservers.entries()) checkIp(server, `${path}.nameservers[${index}]`, problems);
  if (searches.length > mostSearchPaths) {
    problems.invalid(`${path}.searches`, searches, `must not have more than ${mostSearchPaths} search paths`);
  }
  if (searches.join(" ").length > longestSearchList) {
    problems.invalid(
      `${path}.searches`,
      searches,
      `must not have more than ${longestSearchList} characters (including spaces) in the search list`,
    );
  }
  for (const [index, search] of searches.entries()) {
    const name = search.replace(/\.$/, "");
    problems.invalidEach(`${path}.searches[${index}]`, name, dnsSubdomain(name));
  }
  for (const [index, { name = "" }] of options.entries()) {
    if (name === "") problems.required(`${path}.options[${index}]`, "must not be empty");
  }
}

export function checkHostAliases(aliases: readonly HostAlias[], path: string, problems: ProblemList): void {
  for (const [index, { ip, hostnames = [] }] of aliases.entries()) {
    checkIp(ip, `${path}[${index}].ip`, problems);
    for (const [nameIndex, name] of hostnames.entries()) {
      problems.invalidEach(`${path}[${index}].hostnames[${nameIndex}]`, name, dnsSubdomain(name));
    }
  }
}

function checkIp(ip: string, path: string, problems: ProblemList): void {
  // Numbers with leading zeros have always been accepted here.
  const withoutZeros = ip.includes(":") ? ip : ip.replace(/\b0+(?=\d)/g, "");
  if (isIP(withoutZeros) !== 0 && !ip.includes("%")) return;
  problems.invalid(path, ip, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
}
