import { isIPv4 } from "node:net";
import { type Check, failed, fileSource, type Judgement, notApplicable, passed, sourceOf, warned } from "../check.ts";
import { type Facts, known, setting, settingText } from "../facts.ts";
import { isAgent } from "../gather/processes.ts";
import { isExcepted, overlaps } from "../gather/proxy.ts";

export const networkChecks: readonly Check[] = [
  {
    id: "network.forwarding",
    title: "The machine forwards packets",
    why: "without it pods reach nothing beyond their node",
    look: (facts) => {
      const { settings } = known(facts.network);
      const v4 = settings["ipv4/ip_forward"];
      if (v4 === undefined) return { state: "unknown", seen: "/proc/sys/net/ipv4/ip_forward can't be read" };
      const fix = "sysctl -w net.ipv4.ip_forward=1   (and in /etc/sysctl.d/ for the next boot)";
      return v4 === "1" ? passed("net.ipv4.ip_forward is 1") : failed(`net.ipv4.ip_forward is ${v4}`, fix);
    },
  },
  {
    id: "network.bridge",
    title: "Rules see traffic between pods of the node",
    why: "pods would not reach services whose pod is their neighbour on a bridge",
    look: bridgeIsFiltered,
  },
  {
    id: "network.iptables",
    title: "iptables can be relied on",
    why: "rules that one back end makes are not seen by the other, and 1.8.0 to 1.8.3 lose rules on nf_tables",
    look: iptablesIsSound,
  },
  {
    id: "network.resolver",
    title: "Pods get name servers that they can reach",
    why: "a loopback address is the pod's own: a pod would ask itself, and CoreDNS would ask in a circle",
    look: resolverIsReachable,
  },
  {
    id: "network.pod-cidr",
    title: "The addresses of pods are nobody else's",
    why: "packets to pods would leave by the other route, or those to the other network would end here",
    look: podAddressesAreFree,
  },
  {
    id: "network.ports",
    title: "The agent's ports are free, or its own",
    why: "an agent that does not get its ports does not start, or can't be asked",
    look: portsAreOurs,
  },
  {
    id: "network.firewall",
    title: "No firewall cuts the node off",
    why: "the API server comes to the node's port for logs, exec and metrics",
    look: (facts) => {
      const { firewalls } = known(facts.network);
      if (firewalls.length === 0) return passed("neither firewalld nor ufw is active");
      const port = settingText(known(facts.config), "port");
      const fix = firewalls.includes("ufw")
        ? `ufw allow ${port}/tcp`
        : `firewall-cmd --permanent --add-port=${port}/tcp && firewall-cmd --reload`;
      return warned(
        `${firewalls.join(" and ")} is active; see that port ${port} and the pod network are let through`,
        fix,
      );
    },
  },
  {
    id: "network.proxy",
    title: "No HTTP proxy stands between the node and its API server",
    why: "watches and exec through a proxy break, and addresses of pods are unknown to it",
    look: proxyIsExcepted,
  },
  {
    id: "network.mtu",
    title: "Packets of pods fit through the uplink",
    why: "packets that are too large are dropped where nobody sees it: connections open, then hang",
    look: (facts) => {
      const { interfaces, uplink } = known(facts.network);
      const way = interfaces.find(({ name }) => name === uplink);
      const bridges = interfaces.filter(({ name }) => /^(?:cni\d|cbr\d|flannel|cali|cilium_|weave|nodelet)/.test(name));
      if (way === undefined || bridges.length === 0)
        return notApplicable("no bridge or tunnel of a pod network was found");
      const large = bridges.filter(({ mtu }) => mtu > way.mtu);
      if (large.length === 0) return passed(`uplink ${way.name} takes ${way.mtu} bytes, the pod network no more`);
      const shown = large.map(({ name, mtu }) => `${name} ${mtu}`).join(", ");
      return warned(
        `uplink ${way.name} takes ${way.mtu} bytes, but ${shown}`,
        `set the MTU of the pod network to ${way.mtu} or less`,
      );
    },
  },
];

function bridgeIsFiltered(facts: Facts): Judgement {
  const { settings } = known(facts.network);
  if (settingText(known(facts.config), "--kubeconfig") === "")
    return notApplicable("stand-alone: there are no services");
  const v4 = settings["bridge/bridge-nf-call-iptables"];
  const fix =
    "modprobe br_netfilter && sysctl -w net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1";
  if (v4 === undefined)
    return warned("br_netfilter is not loaded", `${fix}   (needed where pods are connected by a bridge)`);
  const v6 = settings["bridge/bridge-nf-call-ip6tables"];
  if (v4 === "1" && v6 !== "0") return passed("net.bridge.bridge-nf-call-iptables is 1");
  return failed(`net.bridge.bridge-nf-call-iptables is ${v4}, -ip6tables ${v6 ?? "not there"}`, fix);
}

function iptablesIsSound(facts: Facts): Judgement {
  const { iptables } = known(facts.network);
  if (iptables.state === "unknown") return { state: "unknown", seen: iptables.problem };
  if (iptables.state === "absent") {
    const wants = setting(known(facts.config), "makeIPTablesUtilChains");
    if (wants.value !== true) return notApplicable("there is no iptables, and the agent makes no chains");
    return warned(
      "there is no iptables, and the agent wants to make its chains",
      "apt install iptables, or makeIPTablesUtilChains: false",
      sourceOf(wants.origin),
    );
  }
  const { version, mode, legacyTables } = iptables;
  const seen = `iptables ${version}${mode === undefined ? "" : ` on ${mode}`}`;
  if (mode === "nf_tables" && /^1\.8\.[0-3]$/.test(version)) {
    return failed(
      seen,
      "install iptables 1.8.4 or newer, or: update-alternatives --set iptables /usr/sbin/iptables-legacy",
    );
  }
  if (mode === "nf_tables" && legacyTables.length > 0) {
    return warned(
      `${seen}, but tables of the old back end are in use: ${legacyTables.join(", ")}`,
      "find who uses iptables-legacy (iptables-legacy-save), and have all use one back end",
    );
  }
  return passed(seen);
}

function resolverIsReachable(facts: Facts): Judgement {
  const { resolver, hasSystemdResolved } = known(facts.network);
  const config = known(facts.config);
  const found = setting(config, "resolvConf");
  const source = sourceOf(found.origin);
  if (settingText(config, "resolvConf") === "")
    return notApplicable("resolvConf is empty: pods get no name servers of the machine");
  if (resolver === undefined)
    return failed(
      `${settingText(config, "resolvConf")} is not there`,
      "name the machine's resolver settings in resolvConf",
      source,
    );
  if ("problem" in resolver) return { state: "unknown", seen: resolver.problem };
  const own = resolver.nameServers.filter((server) => /^127\.|^::1$/.test(server));
  const shown = `${resolver.path} names ${resolver.nameServers.join(", ") || "no server"}`;
  if (own.length === 0) return passed(shown, fileSource(resolver.path));
  const fix = hasSystemdResolved
    ? "set resolvConf: /run/systemd/resolve/resolv.conf, then restart the agent"
    : "write the real name servers to a file, and name it in resolvConf";
  return warned(`${shown}; in a pod ${own.join(", ")} is the pod itself`, fix, source);
}

function podAddressesAreFree(facts: Facts): Judgement {
  const api = "value" in facts.api ? facts.api.value : undefined;
  const configured = settingText(known(facts.config), "podCIDR");
  const cidrs = [...(api?.answer?.podCidrs ?? []), ...(configured === "" ? [] : [configured])].filter((cidr) =>
    isIPv4(cidr.split("/")[0] ?? ""),
  );
  const [cidr] = cidrs;
  if (cidr === undefined) return notApplicable("neither the Node nor the configuration names addresses of pods");
  const { routes } = known(facts.network);
  const taken = routes.filter(
    ({ to, through }) =>
      to !== "0.0.0.0/0" &&
      overlaps(cidr, to) &&
      !/^(?:cni|cbr|flannel|cali|cilium|weave|nodelet|veth|tunl|vxlan|wg|kube)/.test(through),
  );
  if (taken.length === 0) return passed(`${cidr} meets no other route`);
  const shown = taken.map(({ to, through }) => `${to} through ${through}`).join(", ");
  return warned(`${cidr} overlaps ${shown}`, "choose other addresses for pods, or for that network");
}

function portsAreOurs(facts: Facts): Judgement {
  const config = known(facts.config);
  const agent = "value" in facts.agent ? facts.agent.value : undefined;
  const ports = ["port", "healthzPort", "readOnlyPort"].map((name) => ({
    name,
    port: Number(settingText(config, name)),
  }));
  const used = ports.filter(({ port }) => port > 0);
  const { listeners } = known(facts.network);
  const holders = used.map((each) => ({ ...each, listener: listeners.filter(({ port }) => port === each.port) }));
  const foreign = holders.filter(({ listener }) => listener.length > 0 && !listener.some(({ isOurs }) => isOurs));
  const shown = (list: readonly { readonly name: string; readonly port: number }[]): string =>
    list.map(({ name, port }) => `${port} (${name})`).join(", ");
  if (agent?.state === "running") {
    if (foreign.length > 0)
      return failed(
        `another program listens on ${shown(foreign)}`,
        `ss -ltnp 'sport = :${foreign[0]?.port}'   then stop it, or give the agent another port`,
      );
    return passed(`${shown(used)} are the agent's`);
  }
  if (foreign.length === 0) return passed(`${shown(used)} are free`);
  const processes = "value" in facts.processes ? facts.processes.value : [];
  if (processes.some(isAgent)) return passed(`${shown(foreign)} are in use; an agent runs`);
  return failed(
    `a program listens on ${shown(foreign)}`,
    `ss -ltnp 'sport = :${foreign[0]?.port}'   then stop it, or give the agent another port`,
  );
}

function proxyIsExcepted(facts: Facts): Judgement {
  const { proxy } = known(facts.network);
  if (proxy === undefined) return passed("no proxy variable is set");
  const api = "value" in facts.api ? facts.api.value : undefined;
  const host = api?.server === undefined ? undefined : new URL(api.server).hostname;
  const seen = `${proxy.set.join(", ")} is set for ${proxy.of}`;
  if (host === undefined) return passed(`${seen}; there is no API server to reach`);
  if (isExcepted(proxy.except, host)) return passed(`${seen}; NO_PROXY excepts ${host}`);
  return warned(
    `${seen}, and NO_PROXY does not except ${host}`,
    `add ${host}, the pod and service addresses to NO_PROXY of the agent's unit`,
  );
}
