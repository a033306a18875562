import type { ClusterAccess } from "../../../connections/kube/index.ts";
import type { ExaminedWorld } from "../world.ts";
import { credentialsOf, type ServerAccess } from "./api-connection.ts";
import { addressesOf } from "./names.ts";
import { isExcepted, proxyOf } from "./proxy.ts";

/** How to speak to the API server of a kubeconfig. Rejects with the reason why the doctor does not. */
export async function wayToServer(
  world: ExaminedWorld,
  access: ClusterAccess,
  pid: number | undefined,
  signal: AbortSignal,
): Promise<ServerAccess> {
  const host = serverHost(access);
  const notTried = await reasonNotToTry(world, access, pid);
  if (notTried !== undefined) throw new Error(notTried);
  const addresses = await addressesOf(host, world, signal);
  if ("problem" in addresses) throw new Error(`${host}: ${addresses.problem}`);
  const [address = host] = addresses;
  return { access, address, host, port: serverPort(access), credentials: await credentialsOf(world, access) };
}

/** What the agent does there, the doctor can't or won't. */
export async function reasonNotToTry(
  world: ExaminedWorld,
  access: ClusterAccess,
  pid: number | undefined,
): Promise<string | undefined> {
  const { proxyUrl, user } = access;
  if (proxyUrl !== undefined) return "the kubeconfig names a proxy";
  if (user.exec !== undefined) return "its credentials come from a program, which the doctor does not run";
  const proxy = await proxyOf(world, pid);
  if (proxy === undefined || isExcepted(proxy.except, serverHost(access))) return undefined;
  return `${proxy.of} goes through a proxy (${proxy.set.join(", ")})`;
}

export function serverHost({ server }: ClusterAccess): string {
  return server.hostname.replace(/^\[|\]$/g, "");
}

export function serverPort({ server }: ClusterAccess): number {
  return Number(server.port) || (server.protocol === "https:" ? 443 : 80);
}
