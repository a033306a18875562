import type { AgentConfig } from "./agent-config.ts";
import { type EffectiveSetting, effectiveFields } from "./effective.ts";
import type { FieldPath } from "./fields/fields.ts";
import { type ChangeEffect, whenChanged } from "./when-changed.ts";

/** A setting that another configuration has another value for. */
export interface SettingChange {
  readonly name: FieldPath;
  /** In the notation of a file; undefined when it is not set. */
  readonly from: unknown;
  readonly to: unknown;
  /** `never`: no part acts on the setting. */
  readonly effect: ChangeEffect | "never";
}

/** What differs between two configurations of the same command line, in the order of the documentation. */
export function configDifferences(from: AgentConfig, to: AgentConfig): readonly SettingChange[] {
  const before = new Map(effectiveFields(from).map((setting) => [setting.name, setting]));
  return effectiveFields(to).flatMap((after): SettingChange[] => {
    const old = before.get(after.name)?.value;
    const name = after.name as FieldPath;
    if (JSON.stringify(old) === JSON.stringify(after.value) && !hiddenDiffers(name, from, to)) return [];
    return [{ name, from: old, to: after.value, effect: effectOf(after) }];
  });
}

/** What taking over all of the changes takes; nothing to do counts as `at once`. */
export function effectOfAll(changes: readonly SettingChange[]): ChangeEffect {
  const refusals = changes.flatMap(({ name, effect }) =>
    typeof effect === "object" ? [`${name}: ${effect.refused}`] : [],
  );
  if (refusals.length > 0) return { refused: refusals.join("; ") };
  return changes.some(({ effect }) => effect === "restart") ? "restart" : "at once";
}

/** Says when a change is in effect, for people. */
export function describeChangeEffect(effect: SettingChange["effect"]): string {
  switch (effect) {
    case "at once":
      return "takes effect at once";
    case "restart":
      return "with a restart of the agent, which no container notices";
    case "never":
      return "never: no part of nodelet acts on it";
    default:
      return `not while the agent runs: ${effect.refused}`;
  }
}

function effectOf({ name, effect }: EffectiveSetting): SettingChange["effect"] {
  return effect === "yes" ? whenChanged[name as FieldPath] : "never";
}

/** Values of headers and passwords are masked for people, and differ all the same. */
function hiddenDiffers(name: FieldPath, from: AgentConfig, to: AgentConfig): boolean {
  if (name !== "staticPodURLHeader" && name !== "staticPodURL") return false;
  return JSON.stringify(from.kubelet[name]) !== JSON.stringify(to.kubelet[name]);
}
