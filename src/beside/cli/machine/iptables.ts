// The CNI port mapping makes these once for all networks. Empty, they are a leftover; it makes them again when needed.
const hostPortChain = "CNI-HOSTPORT-DNAT";
const sharedChains = [hostPortChain, "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"];

/**
 * Input for `iptables-restore --noflush` that removes every rule and chain of the CNI network from the nat table, or
 * undefined when there is none. `saved` is what `iptables-save -t nat` printed.
 */
export function removalScript(saved: string, network: string): string | undefined {
  const rules = saved.split("\n").filter((line) => line.startsWith("-A "));
  const marked = rules.filter((rule) => rule.includes(`name: \\"${network}\\"`));
  // Each pod has chains of its own. What jumps there is marked with the network's name, and what is inside often: the
  // jump is made last and removed first, so a plugin that was killed in between leaves a chain that nothing jumps to.
  const touched = marked.flatMap((rule) => [targetOf(rule), chainOf(rule)]);
  const dropped = new Set(touched.filter((chain) => /^CNI-(DN-)?[0-9a-f]+$/.test(chain)));
  const hostPorts = rules.filter((rule) => chainOf(rule) === hostPortChain);
  if (hostPorts.every((rule) => marked.includes(rule))) {
    for (const chain of sharedChains) if (saved.includes(`\n:${chain} `)) dropped.add(chain);
  }
  const removed = rules.filter((rule) => !dropped.has(chainOf(rule)) && dropped.has(targetOf(rule)));
  if (dropped.size === 0) return undefined;
  return [
    "*nat",
    ...removed.map((rule) => rule.replace("-A ", "-D ")),
    ...[...dropped].map((chain) => `-F ${chain}`),
    ...[...dropped].map((chain) => `-X ${chain}`),
    "COMMIT",
    "",
  ].join("\n");
}

function chainOf(rule: string): string {
  return rule.split(" ")[1] ?? "";
}

function targetOf(rule: string): string {
  return / -j (\S+)/.exec(rule)?.[1] ?? "";
}
