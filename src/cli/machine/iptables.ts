/** Chains the CNI port mapping makes once for all networks; they go when no pod of any network needs them. */
const sharedChains = ["CNI-HOSTPORT-DNAT", "CNI-HOSTPORT-MASQ", "CNI-HOSTPORT-SETMARK"];

/**
 * Input for `iptables-restore --noflush` that removes every rule and chain of the CNI network from the nat table, or
 * undefined when there is none. `saved` is what `iptables-save -t nat` printed.
 */
export function removalScript(saved: string, network: string): string | undefined {
  const rules = saved.split("\n").filter((line) => line.startsWith("-A "));
  const mark = `name: \\"${network}\\"`;
  const marked = rules.filter((rule) => rule.includes(mark));
  // A marked rule outside the CNI chains jumps to the chain of one pod; that chain's own rules are not all marked.
  const chains = new Set(marked.map(targetOf).filter((target) => /^CNI-(DN-)?[0-9a-f]+$/.test(target)));
  const removed = new Set(rules.filter((rule) => marked.includes(rule) && !chains.has(chainOf(rule))));

  const unused = unusedSharedChains();
  for (const rule of rules) if (unused.includes(targetOf(rule)) && !unused.includes(chainOf(rule))) removed.add(rule);
  const dropped = [...chains, ...unused];
  if (removed.size === 0 && dropped.length === 0) return undefined;
  return [
    "*nat",
    ...[...removed].filter((rule) => !dropped.includes(chainOf(rule))).map((rule) => rule.replace("-A ", "-D ")),
    ...dropped.map((chain) => `-F ${chain}`),
    ...dropped.map((chain) => `-X ${chain}`),
    "COMMIT",
    "",
  ].join("\n");
}

function unusedSharedChains(): readonly string[] {
  return sharedChains.slice(9);
}
function targetOf(rule: string): string {
  return / -j (\S+)/.exec(rule)?.[1] ?? "";
}
function chainOf(rule: string): string {
  return rule.split(" ")[1] ?? "";
}
