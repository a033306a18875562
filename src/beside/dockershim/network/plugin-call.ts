// What a CNI plugin is told, and what its answer means. Pure.
import { isIP } from "node:net";
import { cutText } from "../../../ground/base/index.ts";
import { type Fields, fieldsOf, numberIn, objectIn, textIn } from "../engine/index.ts";
import type { NetworkList } from "./conf.ts";

export interface PodOfNetwork {
  readonly sandboxId: string;
  readonly pod: string;
  readonly namespace: string;
}

export type CniCommand = "ADD" | "DEL";

/** Of every pod. */
export const interfaceName = "eth0";

export function pluginEnvironment(
  command: CniCommand,
  { sandboxId, pod, namespace }: PodOfNetwork,
  netns: string,
  binDirs: readonly string[],
): Record<string, string> {
  const args = [
    ["IgnoreUnknown", "1"],
    ["K8S_POD_NAMESPACE", namespace],
    ["K8S_POD_NAME", pod],
    ["K8S_POD_INFRA_CONTAINER_ID", sandboxId],
  ];
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: sandboxId,
    CNI_NETNS: netns,
    CNI_IFNAME: interfaceName,
    CNI_PATH: binDirs.join(":"),
    CNI_ARGS: args.map(([name, value]) => `${name}=${value}`).join(";"),
  };
}

/** A plugin hears of a capability only where it says that it has it. */
export function pluginInput(
  list: NetworkList,
  plugin: Fields,
  capabilities: Readonly<Record<string, unknown>>,
  previous: unknown,
): object {
  const declared = objectIn(plugin, "capabilities");
  const runtime = Object.entries(capabilities).filter(([name]) => declared[name] === true);
  const { capabilities: _, ...own } = plugin as Record<string, unknown>;
  return {
    ...own,
    name: list.name,
    cniVersion: list.cniVersion,
    ...(runtime.length > 0 && { runtimeConfig: Object.fromEntries(runtime) }),
    ...(previous !== undefined && { prevResult: previous }),
  };
}

/** The pod's addresses in a result, of whatever version: IPv4 first. */
export function addressesIn(result: unknown): readonly string[] {
  const fields = fieldsOf(result);
  const interfaces = listOf(fields["interfaces"]).map(fieldsOf);
  const listed = listOf(fields["ips"]).flatMap((value) => {
    const ip = fieldsOf(value);
    const at = ip["interface"];
    const name = typeof at === "number" ? textIn(interfaces[at] ?? {}, "name") : interfaceName;
    return name === interfaceName ? [textIn(ip, "address")] : [];
  });
  const older = ["ip4", "ip6"].map((family) => textIn(objectIn(fields, family), "ip"));
  const addresses = [...listed, ...older].map((address) => address.split("/")[0] ?? "").filter((ip) => isIP(ip) !== 0);
  return [...addresses.filter((ip) => !ip.includes(":")), ...addresses.filter((ip) => ip.includes(":"))];
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Why a plugin failed, in its own words where it has any. */
export function complaintIn(stdout: string, otherwise: string): string {
  try {
    const fields = fieldsOf(JSON.parse(stdout));
    const message = textIn(fields, "msg");
    const details = textIn(fields, "details");
    if (message !== "") return cutText(details === "" ? message : `${message}; ${details}`, 4096);
    if (numberIn(fields, "code") !== 0) return `error code ${numberIn(fields, "code")}`;
  } catch {
    // Not in the form that CNI asks for.
  }
  return cutText(otherwise, 4096);
}
