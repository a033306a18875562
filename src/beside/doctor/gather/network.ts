import { messageOf } from "../../../ground/base/index.ts";
import { settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import { type IptablesFacts, iptablesFacts } from "./iptables.ts";
import { type Listener, readListeners } from "./listeners.ts";
import { type ProxyVariables, proxyOf } from "./proxy.ts";

/** The machine's side of the pod network. */
export interface ExaminedNetwork {
  /** Values below /proc/sys/net; what is not there is left out. */
  readonly settings: Readonly<Record<string, string>>;
  readonly iptables: IptablesFacts;
  /** The resolver settings that pods get; undefined: none are given. */
  readonly resolver:
    | { readonly path: string; readonly nameServers: readonly string[] }
    | { readonly path: string; readonly problem: string }
    | undefined;
  readonly hasSystemdResolved: boolean;
  readonly listeners: readonly Listener[];
  readonly firewalls: readonly string[];
  /** Proxy variables of the agent (or of this command), without their values. */
  readonly proxy: ProxyVariables | undefined;
  readonly interfaces: readonly { readonly name: string; readonly mtu: number }[];
  /** The interface of the default route. */
  readonly uplink: string | undefined;
  /** Destinations of routes, as `10.0.0.0/8`, with their interface. */
  readonly routes: readonly { readonly to: string; readonly through: string }[];
}

const settings = [
  ...["ipv4/ip_forward", "ipv6/conf/all/forwarding"],
  ...["bridge/bridge-nf-call-iptables", "bridge/bridge-nf-call-ip6tables"],
];

export async function gatherNetwork(
  world: ExaminedWorld,
  need: NeedFact,
  signal: AbortSignal,
): Promise<ExaminedNetwork> {
  const { machine } = world;
  const config = await need("config");
  const agent = await need("agent");
  const pid = agent.state === "running" ? agent.self.pid : undefined;
  const values: [string, string][] = [];
  for (const name of settings) {
    const value = await machine.textIfThere(`/proc/sys/net/${name}`).catch(() => undefined);
    if (value !== undefined) values.push([name, value.trim()]);
  }
  const routes = parseRoutes((await machine.textIfThere("/proc/net/route")) ?? "");
  return {
    settings: Object.fromEntries(values),
    iptables: await iptablesFacts(world, signal),
    resolver: await readResolver(world, settingText(config, "resolvConf")),
    hasSystemdResolved: await machine.isThere("/run/systemd/resolve/resolv.conf"),
    listeners: await readListeners(world, pid),
    firewalls: await firewalls(world, need),
    proxy: await proxyOf(world, pid),
    interfaces: await readInterfaces(world),
    uplink: routes.find(({ to }) => to === "0.0.0.0/0")?.through,
    routes,
  };
}

async function readResolver({ files }: ExaminedWorld, path: string): Promise<ExaminedNetwork["resolver"]> {
  if (path === "") return undefined;
  let content: string | undefined;
  try {
    content = await files.textIfThere(path, 64 * 1024);
  } catch (error) {
    return { path, problem: messageOf(error) };
  }
  if (content === undefined) return undefined;
  return { path, nameServers: [...content.matchAll(/^\s*nameserver\s+(\S+)/gm)].map(([, server = ""]) => server) };
}

async function firewalls({ machine }: ExaminedWorld, need: NeedFact): Promise<readonly string[]> {
  const found: string[] = [];
  if ((await need("processes")).some(({ program }) => program === "firewalld")) found.push("firewalld");
  const ufw = await machine.textIfThere("/etc/ufw/ufw.conf").catch(() => undefined);
  if (ufw !== undefined && /^\s*ENABLED=yes\s*$/im.test(ufw)) found.push("ufw");
  return found;
}

async function readInterfaces({ machine }: ExaminedWorld): Promise<ExaminedNetwork["interfaces"]> {
  const found: { name: string; mtu: number }[] = [];
  for (const name of await machine.names("/sys/class/net", 500)) {
    const mtu = Number(await machine.textIfThere(`/sys/class/net/${name}/mtu`).catch(() => ""));
    if (mtu > 0) found.push({ name, mtu });
  }
  return found;
}

/** Lines of `Iface Destination Gateway Flags RefCnt Use Metric Mask …`, addresses as little-endian hex. */
export function parseRoutes(content: string): ExaminedNetwork["routes"] {
  return content
    .split("\n")
    .slice(1, 2_000)
    .flatMap((line) => {
      const [through = "", destination = "", , , , , , mask = ""] = line.trim().split(/\s+/);
      if (!/^[0-9A-F]{8}$/.test(destination) || !/^[0-9A-F]{8}$/.test(mask)) return [];
      const bits = [...Number.parseInt(mask, 16).toString(2)].filter((bit) => bit === "1").length;
      return [{ to: `${dotted(destination)}/${bits}`, through }];
    });
}

function dotted(hex: string): string {
  return [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join(".");
}
