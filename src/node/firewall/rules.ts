export type Family = "iptables" | "ip6tables";

/** Which of the two kinds of iptables the node uses is seen by where this empty chain is. */
const hintChain = "KUBE-IPTABLES-HINT";
const firewallChain = "KUBE-FIREWALL";

/** Empty too: when it is gone, somebody has removed all chains, and the others have to be made again. */
export const canaryChain = "KUBE-KUBELET-CANARY";
/** The first is looked at; the others tell that a removal is complete. */
export const canaryTables = ["mangle", "nat", "filter"] as const;

/** Arguments of iptables. Each is done only where it is not done yet. */
export type Wish =
  | { readonly type: "chain"; readonly table: string; readonly chain: string }
  | {
      readonly type: "rule";
      readonly table: string;
      readonly chain: string;
      readonly position: "first" | "last";
      readonly rule: readonly string[];
    };

/** In the order in which they have to be fulfilled. */
export function wishesFor(family: Family): readonly Wish[] {
  const hint: Wish = { type: "chain", table: "mangle", chain: hintChain };
  return family === "ip6tables" ? [hint] : [hint, ...firewall];
}

export const canaries: readonly Wish[] = canaryTables.map((table) => ({ type: "chain", table, chain: canaryChain }));

const jumpFrom = (chain: string): Wish => ({
  type: "rule",
  table: "filter",
  chain,
  position: "first",
  rule: ["-j", firewallChain],
});

/** Whoever makes the host route packets to 127.0.0.0/8 must not open its local services to the network (CVE-2020-8558). */
const firewall: readonly Wish[] = [
  { type: "chain", table: "filter", chain: firewallChain },
  jumpFrom("OUTPUT"),
  jumpFrom("INPUT"),
  {
    type: "rule",
    table: "filter",
    chain: firewallChain,
    position: "last",
    rule: [
      ...["-m", "comment", "--comment", "block incoming localnet connections"],
      ...["--dst", "127.0.0.0/8", "!", "--src", "127.0.0.0/8"],
      ...["-m", "conntrack", "!", "--ctstate", "RELATED,ESTABLISHED,DNAT"],
      ...["-j", "DROP"],
    ],
  },
];
