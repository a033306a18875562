import { access, writeFile } from "node:fs/promises";
import type { DNSConfig } from "../../../connections/cri/index.ts";

/** Written in place: the file is mounted in the pod's containers by now. */
export async function writeResolvConf(path: string, dns: DNSConfig | undefined): Promise<void> {
  const lines = resolvConf(dns);
  if (lines === undefined) return;
  await access(path).catch((error: unknown) => {
    throw new Error(`ResolvConfPath "${path}" does not exist`, { cause: error });
  });
  await writeFile(path, lines);
}

function resolvConf(dns: DNSConfig | undefined): string | undefined {
  const { servers = [], searches = [], options = [] } = dns ?? {};
  if (servers.length + searches.length + options.length === 0) return undefined;
  const lines = [
    ...servers.map((server) => `nameserver ${server}`),
    ...(searches.length > 0 ? [`search ${searches.join(" ")}`] : []),
    ...(options.length > 0 ? [`options ${options.join(" ")}`] : []),
  ];
  return `${lines.join("\n")}\n`;
}
