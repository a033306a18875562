import { table } from "../../base/index.ts";
import { hint } from "../text/nearest.ts";
import type { GateSpec, GateStage } from "./gate-spec.ts";
import { type GateName, kubeletGates } from "./gate-table.ts";
import { laterGates } from "./gate-table-later.ts";
import { otherComponentGates } from "./gate-table-others.ts";

type ReadGate = GateName | keyof typeof laterGates;

/** The feature gates as they stand once flags and files have been read. */
export interface FeatureGates {
  enabled(name: ReadGate): boolean;
  /** Every gate of v1.34 and what we have of later ones, also those of other components, for metrics and for people. */
  readonly all: readonly KnownGate[];
}

export interface KnownGate {
  readonly name: string;
  readonly stage: GateStage;
  readonly enabled: boolean;
  readonly default: boolean;
}

interface Gate {
  readonly name: string;
  readonly stage: GateStage;
  readonly default: boolean;
  readonly locked: boolean;
}

/** Switches whole stages, except for gates that are set by name. */
const stageSwitches: Readonly<Record<string, GateStage>> = table({ AllAlpha: "alpha", AllBeta: "beta" });

const knownGates: ReadonlyMap<string, Gate> = new Map(
  Object.entries<GateSpec>({ ...kubeletGates, ...laterGates, ...otherComponentGates }).map(([name, spec]) => [
    name,
    gate(name, spec),
  ]),
);

/** Gates being set, first by flags, then by files. */
export class GateSet {
  readonly #explicit = new Map<string, boolean>();

  /** What is wrong with the map; then nothing of it is taken. */
  set(gates: Readonly<Record<string, boolean>>): GateProblem[] {
    const problems = Object.entries(gates).flatMap(([name, value]) => gateProblem(name, value) ?? []);
    if (problems.length > 0) return problems;
    for (const [name, value] of Object.entries(gates)) this.#explicit.set(name, value);
    return [];
  }

  isOn(name: string): boolean {
    const known = knownGates.get(name);
    const explicit = this.#explicit.get(name);
    if (explicit !== undefined || known === undefined) return explicit ?? false;
    for (const [word, stage] of Object.entries(stageSwitches)) {
      const all = this.#explicit.get(word);
      if (all !== undefined && known.stage === stage) return all;
    }
    return known.default;
  }

  /** One line for each gate set by name that will go away. */
  warnings(): string[] {
    return [...this.#explicit].flatMap(([name, value]) => {
      const stage = knownGates.get(name)?.stage;
      if (stage !== "GA" && stage !== "deprecated") return [];
      return [`Setting ${stage} feature gate ${name}=${value}. It will be removed in a future release.`];
    });
  }

  freeze(): FeatureGates {
    const all = [...knownGates.values()].map((gate) =>
      Object.freeze({ name: gate.name, stage: gate.stage, default: gate.default, enabled: this.isOn(gate.name) }),
    );
    const on = new Set(all.filter((gate) => gate.enabled).map((gate) => gate.name));
    return Object.freeze({ enabled: (name: ReadGate) => on.has(name), all: Object.freeze(all) });
  }
}

export interface GateProblem {
  readonly gate: string;
  readonly message: string;
}

function gateProblem(name: string, value: boolean): GateProblem | undefined {
  if (Object.hasOwn(stageSwitches, name)) return undefined;
  const known = knownGates.get(name);
  if (known === undefined) {
    const names = [...knownGates.keys(), ...Object.keys(stageSwitches)];
    return { gate: name, message: `unrecognized feature gate: ${name}${hint(name, names)}` };
  }
  if (known.locked && value !== known.default) {
    const message = `cannot set feature gate ${name} to ${value}, feature is locked to ${known.default}`;
    return { gate: name, message };
  }
  return undefined;
}

/** Lines for the help text: the gates a user may try, not those that are settled. */
export function describeGates(): string[] {
  const settable = [...knownGates.values()].filter(({ stage }) => stage === "alpha" || stage === "beta");
  return [
    ...Object.entries(stageSwitches).map(
      ([name, stage]) => `${name}=true|false (${stage.toUpperCase()} - default=false)`,
    ),
    ...settable.map((gate) => `${gate.name}=true|false (${gate.stage.toUpperCase()} - default=${gate.default})`),
  ].sort();
}

function gate(name: string, spec: GateSpec): Gate {
  const [stage, state, lock] = spec.split(" ");
  return { name, stage: stage as GateStage, default: state === "on", locked: lock === "locked" };
}
