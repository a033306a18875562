import type { AgentConfig, Origin } from "./agent-config.ts";
import { valueAt } from "./candidate.ts";
import { keyPath } from "./fields/field-kinds.ts";
import { type FieldPath, fieldPaths, specOf } from "./fields/fields.ts";
import { type FlagOnlyName, flagOnly } from "./flags/flag-only.ts";
import { type Effect, inEffect } from "./in-effect.ts";
import { type ChangeEffect, whenChanged } from "./when-changed.ts";

/** One setting of an effective configuration, for people. */
export interface EffectiveSetting {
  /** The path in the file, or the flag with its dashes. */
  readonly name: string;
  /** In the notation of a file; undefined when it is not set and has no default. */
  readonly value: unknown;
  readonly origin: Origin;
  /** Origins of single keys, where the value is a map. */
  readonly keyOrigins: Readonly<Record<string, Origin>>;
  readonly effect: Effect;
  /** What it would be if nobody had set it, in the same notation. */
  readonly default: unknown;
  /** What a change takes to be in effect; undefined for flags, which never change while the process lives. */
  readonly whenChanged: ChangeEffect | undefined;
}

const builtIn: Origin = { from: "default" };

/** Every field of the file, in the order of the documentation. */
export function effectiveFields(config: AgentConfig): EffectiveSetting[] {
  const hasFile = config.flags.configFile !== "" || config.flags.configDir !== "";
  return fieldPaths.map((path) => {
    const value = valueAt(config.kubelet, path);
    const { default: usual, legacyDefault } = specOf(path);
    const fallback = hasFile ? usual : (legacyDefault ?? usual);
    return {
      name: path,
      value: value === undefined || value === null ? undefined : shown(path, specOf(path).kind.encode(value)),
      origin: config.origins[path] ?? builtIn,
      keyOrigins: keyOrigins(config, path, value),
      effect: inEffect[path],
      default: fallback === undefined || fallback === null ? undefined : specOf(path).kind.encode(fallback),
      whenChanged: config.origins[path]?.from === "flag" ? undefined : whenChanged[path],
    };
  });
}

/** The flags that are no fields of the file. */
export function effectiveFlags(config: AgentConfig): EffectiveSetting[] {
  return (Object.keys(flagOnly) as FlagOnlyName[]).map((name) => ({
    name: `--${name}`,
    value: config.flagTexts[name],
    origin: config.origins[`--${name}`] ?? builtIn,
    keyOrigins: {},
    effect: inEffect[`--${name}`],
    default: flagOnly[name].default,
    whenChanged: undefined,
  }));
}

/** Headers carry tokens, addresses may carry passwords, and what is printed gets pasted. */
function shown(path: FieldPath, value: unknown): unknown {
  if (path === "staticPodURL") return String(value).replace(/^(\w+:\/\/)[^/]*@/, "$1<masked>@");
  if (path !== "staticPodURLHeader") return value;
  return Object.fromEntries(Object.keys(value as object).map((name) => [name, ["<masked>"]]));
}

/** Where a value came from, in words. */
export function describeOrigin(origin: Origin): string {
  switch (origin.from) {
    case "default":
      return origin.because === undefined ? "default" : `default: ${origin.because}`;
    case "file":
      return `file ${origin.path}:${origin.line}`;
    case "drop-in":
      return `drop-in ${origin.index} ${origin.path}:${origin.line}`;
    case "flag":
      return `flag --${origin.flag}`;
  }
}

function keyOrigins(config: AgentConfig, path: FieldPath, value: unknown): Record<string, Origin> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  const whole = config.origins[path] ?? builtIn;
  return Object.fromEntries(Object.keys(value).map((key) => [key, config.origins[keyPath(path, key)] ?? whole]));
}
