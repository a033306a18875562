import type { KubeletFlags } from "../agent-config.ts";
import type { KubeletCandidate } from "../candidate.ts";
import type { GateName } from "../gates/gate-table.ts";

/** What the rules look at, and where they put what they find. */
export interface RuleContext {
  readonly config: KubeletCandidate;
  readonly flags: KubeletFlags;
  /** The text of --cloud-provider and --node-ip, before they were narrowed. */
  readonly cloudProvider: string;
  readonly nodeIP: string;
  readonly dashboardAddress: string;
  readonly cgroupVersion: 1 | 2;
  readonly onlineCpus: string | undefined;
  isOn(gate: GateName): boolean;
  /** `field` is a field path, the path of a map key or list entry, or a flag with its dashes. */
  problem(field: string, message: string): void;
  /** Continues "invalid configuration: ". */
  invalid(field: string, message: string): void;
}

export function shown(value: unknown): string {
  return typeof value === "string" || Array.isArray(value) ? JSON.stringify(value) : String(value);
}

export function words(list: readonly string[]): string {
  return list.map((word) => JSON.stringify(word)).join(", ");
}
