import { chmod, open, readFile, writeFile } from "node:fs/promises";
import type { Container, HostAlias, IdentifiedPod } from "../../../ground/model/index.ts";
import type { PodHostname } from "./hostname.ts";

export const hostsPath = "/etc/hosts";
const worldReadable = 0o644;

/** Whether the container gets our /etc/hosts: it may mount its own, and without an address there is nothing to say. */
export function wantsHostsFile(pod: IdentifiedPod, container: Container, podIps: readonly string[]): boolean {
  const mountsItsOwn = container.volumeMounts?.some(({ mountPath }) => mountPath === hostsPath) ?? false;
  return (podIps.length > 0 || pod.spec.hostNetwork === true) && !mountsItsOwn;
}

export interface HostsFileInputs {
  readonly podIps: readonly string[];
  readonly hostname: PodHostname;
  /** The node's own file, whose entries a pod on the host's network sees. */
  readonly nodeHostsPath?: string;
}

/** Writes the pod's hosts file in place, because containers already running have that very file mounted. */
export async function writeHostsFile(path: string, pod: IdentifiedPod, inputs: HostsFileInputs): Promise<void> {
  const content =
    pod.spec.hostNetwork === true
      ? nodeHosts(await readFile(inputs.nodeHostsPath ?? hostsPath, "utf8"), pod.spec.hostAliases)
      : managedHosts(inputs.podIps, inputs.hostname, pod.spec.hostAliases);
  if (!(await holds(path, Buffer.from(content)))) await writeFile(path, content);
  await chmod(path, worldReadable);
}

/** Containers can write to the file, and make it as long as they like: no more of it is read than is to be there. */
async function holds(path: string, content: Buffer): Promise<boolean> {
  try {
    await using file = await open(path, "r");
    if ((await file.stat()).size !== content.length) return false;
    const { bytesRead, buffer } = await file.read(Buffer.alloc(content.length), 0, content.length, 0);
    return bytesRead === content.length && buffer.equals(content);
  } catch {
    return false;
  }
}

export function managedHosts(
  podIps: readonly string[],
  { hostname, domain }: PodHostname,
  aliases: readonly HostAlias[] = [],
): string {
  const names = domain === "" ? hostname : `${hostname}.${domain}\t${hostname}`;
  const lines = [
    "# Kubernetes-managed hosts file.",
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::0\tip6-localnet",
    "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
    ...podIps.map((ip) => `${ip}\t${names}`),
  ];
  return `${lines.join("\n")}\n${aliasLines(aliases)}`;
}

export function nodeHosts(nodeFile: string, aliases: readonly HostAlias[] = []): string {
  return `# Kubernetes-managed hosts file (host network).\n${nodeFile}${aliasLines(aliases)}`;
}

function aliasLines(aliases: readonly HostAlias[]): string {
  if (aliases.length === 0) return "";
  const lines = aliases.map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join("\t")}\n`);
  return `\n# Entries added by HostAliases.\n${lines.join("")}`;
}
