import type { Check } from "./check.ts";
import { agentChecks } from "./checks/agent.ts";
import { apiChecks } from "./checks/api.ts";
import { certificateChecks } from "./checks/certificates.ts";
import { cisFileChecks } from "./checks/cis-files.ts";
import { cisSettingChecks } from "./checks/cis-settings.ts";
import { configurationChecks } from "./checks/configuration.ts";
import { diskChecks } from "./checks/disk.ts";
import { groundChecks } from "./checks/ground.ts";
import { kernelChecks } from "./checks/kernel.ts";
import { kernelLogChecks } from "./checks/kernel-log.ts";
import { networkChecks } from "./checks/network.ts";
import { otherAgentChecks } from "./checks/other-agents.ts";
import { podChecks } from "./checks/pods.ts";
import { runtimeChecks } from "./checks/runtime.ts";
import { timeChecks } from "./checks/time.ts";
import type { FactName } from "./facts.ts";

/** What `--only` knows by one word. */
export const topics = ["cis", "preflight", "kernel", "runtime", "api", "pods"] as const;
export type DoctorTopic = (typeof topics)[number];

/** Checks that belong together, and all that they look at. */
export interface CheckGroup {
  readonly name: string;
  readonly topics: readonly DoctorTopic[];
  readonly needs: readonly FactName[];
  readonly checks: readonly Check[];
}

/** In the order of the report. */
export const checkGroups: readonly CheckGroup[] = [
  group("cis files", ["cis"], ["config", "configFiles", "unit", "kubeProxy"], cisFileChecks),
  group(
    "cis settings",
    ["cis"],
    ["config", "agent", "certificates", "serving", "ground", "network", "pods", "kernel", "unit", "kubeProxy"],
    cisSettingChecks,
  ),
  group("configuration", ["preflight"], ["config"], configurationChecks),
  group("agent", ["preflight", "api"], ["agent"], agentChecks),
  group("ground", ["preflight"], ["ground", "config"], groundChecks),
  group("kernel", ["preflight", "kernel"], ["kernel", "config", "agent"], kernelChecks),
  group("network", ["preflight"], ["network", "config", "api", "agent", "processes"], networkChecks),
  group("runtime", ["runtime"], ["runtime", "config", "ground"], runtimeChecks),
  group("disk", ["preflight"], ["disk", "config", "agent"], diskChecks),
  group("time", ["preflight", "api"], ["time", "api", "ground", "config"], timeChecks),
  group("api", ["api"], ["api", "config", "agent", "sameMachines"], apiChecks),
  group("certificates", ["api"], ["certificates", "ground", "agent"], certificateChecks),
  group("other agents", ["preflight"], ["processes", "config", "agent", "disk"], otherAgentChecks),
  group("pods", ["pods"], ["pods"], podChecks),
  group("kernel log", ["kernel"], ["kernelLog", "pods"], kernelLogChecks),
];

function group(
  name: string,
  of: readonly DoctorTopic[],
  needs: readonly FactName[],
  checks: readonly Check[],
): CheckGroup {
  return { name, topics: of, needs, checks };
}

/** Whether a word of `--only` or `--skip` means the check: a topic, its group, or its own id. */
export function isMeant(word: string, { name, topics: of }: CheckGroup, { id }: Check): boolean {
  const plain = word.toLowerCase();
  return (
    id === plain ||
    id === plain.replace(/^cis[-.]/, "") ||
    name.replaceAll(" ", "-") === plain ||
    of.some((topic) => topic === plain)
  );
}

/** Words that mean nothing. */
export function unknownWords(words: readonly string[]): readonly string[] {
  return words.filter((word) => !checkGroups.some((each) => each.checks.some((check) => isMeant(word, each, check))));
}
