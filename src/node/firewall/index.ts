// The few iptables chains that other parts of a cluster expect of a node's agent.
export { UtilChains } from "./util-chains.ts";
