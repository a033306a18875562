import { parseQuantity, tryParseQuantity } from "../../model/index.ts";
import { keyPath } from "../fields/field-kinds.ts";
import { label } from "../fields/fields.ts";
import { parseCpuSet } from "../text/cpu-set.ts";
import { parseBool, parseInteger } from "../text/go-text.ts";
import { hint } from "../text/nearest.ts";
import { type RuleContext, show } from "./rule-context.ts";

/** Options of the CPU and topology managers. */
export function checkManagers(context: RuleContext): void {
  checkCpuOptions(context);
  checkStaticCpus(context);
  checkTopologyOptions(context);
}

type Stage = "stable" | "beta" | "alpha";

const cpuOptions: Readonly<Record<string, Stage>> = {
  "full-pcpus-only": "stable",
  "strict-cpu-reservation": "beta",
  "distribute-cpus-across-numa": "beta",
  "prefer-align-cpus-by-uncorecache": "beta",
  "align-by-socket": "alpha",
  "distribute-cpus-across-cores": "alpha",
};

const cpuConflicts = [
  ["full-pcpus-only", "distribute-cpus-across-cores"],
  ["distribute-cpus-across-numa", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"],
] as const;

function checkCpuOptions({ config, invalid, isOn }: RuleContext): void {
  const path = "cpuManagerPolicyOptions";
  const name = label(path);
  const options = config.cpuManagerPolicyOptions;
  if (config.cpuManagerPolicy === "none" && Object.keys(options).length > 0) {
    const rule = `must be empty when ${label("cpuManagerPolicy")} is "none"`;
    invalid(path, `${name} ${JSON.stringify(options)} ${rule}`);
    return;
  }
  for (const [option, value] of Object.entries(options)) {
    const field = keyPath(path, option);
    const stage = Object.hasOwn(cpuOptions, option) ? cpuOptions[option] : undefined;
    if (stage === undefined) {
      invalid(
        field,
        `${name}: unknown CPU Manager Policy option: ${show(option)}${hint(option, Object.keys(cpuOptions))}`,
      );
    } else if (stage === "alpha" && !isOn("CPUManagerPolicyAlphaOptions")) {
      invalid(
        field,
        `${name}: CPU Manager Policy Alpha-level Options not enabled, but option ${show(option)} provided; it needs the gate CPUManagerPolicyAlphaOptions`,
      );
    } else if (stage === "beta" && !isOn("CPUManagerPolicyBetaOptions")) {
      invalid(
        field,
        `${name}: CPU Manager Policy Beta-level Options not enabled, but option ${show(option)} provided; it needs the gate CPUManagerPolicyBetaOptions`,
      );
    }
    const reason = textProblem(() => parseBool(value));
    if (reason !== undefined) invalid(field, `${name}: bad value ${show(value)} for option ${show(option)}: ${reason}`);
  }
  const isSet = (option: string): boolean =>
    Object.hasOwn(options, option) &&
    textProblem(() => parseBool(options[option] ?? "")) === undefined &&
    parseBool(options[option] ?? "");
  for (const [one, other] of cpuConflicts) {
    if (isSet(one) && isSet(other))
      invalid(path, `${name}: static policy options ${one} and ${other} can not be used at the same time`);
  }
  if (isSet("align-by-socket") && config.topologyManagerPolicy === "single-numa-node") {
    invalid(
      path,
      `${name}: option align-by-socket is incompatible with ${label("topologyManagerPolicy")} "single-numa-node"`,
    );
  }
}

function checkStaticCpus({ config, invalid }: RuleContext): void {
  if (config.cpuManagerPolicy !== "static") return;
  const amounts = [config.systemReserved["cpu"], config.kubeReserved["cpu"]];
  const total = amounts.reduce((sum, text) => sum + (tryParseQuantity(text ?? "0") ?? 0n), parseQuantity("0"));
  const isByNumber =
    textProblem(() => parseCpuSet(config.reservedSystemCPUs)) === undefined && config.reservedSystemCPUs !== "";
  if (total > 0n || isByNumber) return;
  const rule = "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero";
  invalid(
    "cpuManagerPolicy",
    `${label("cpuManagerPolicy")} "static": ${rule}; set ${label("systemReserved")}, ${label("kubeReserved")} or ${label("reservedSystemCPUs")}`,
  );
}

const topologyOptions: Readonly<Record<string, Stage>> = {
  "prefer-closest-numa-nodes": "stable",
  "max-allowable-numa-nodes": "beta",
};

function checkTopologyOptions({ config, invalid, isOn }: RuleContext): void {
  const path = "topologyManagerPolicyOptions";
  const name = label(path);
  const options = Object.entries(config.topologyManagerPolicyOptions);
  if (options.length > 0 && !isOn("TopologyManagerPolicyOptions")) {
    invalid(
      path,
      `${name} ${JSON.stringify(config.topologyManagerPolicyOptions)} requires feature gate TopologyManagerPolicyOptions`,
    );
  }
  for (const [option, value] of options) {
    const field = keyPath(path, option);
    const wrong = (reason: string): void => invalid(field, `${name}: ${reason}`);
    const stage = Object.hasOwn(topologyOptions, option) ? topologyOptions[option] : undefined;
    if (stage === undefined) {
      wrong(`unknown Topology Manager Policy option: ${show(option)}${hint(option, Object.keys(topologyOptions))}`);
    } else if (stage === "beta" && !isOn("TopologyManagerPolicyBetaOptions")) {
      wrong(
        `topology manager policy beta-level options not enabled, but option ${show(option)} provided; it needs the gate TopologyManagerPolicyBetaOptions`,
      );
    }
    if (option === "prefer-closest-numa-nodes") {
      const reason = textProblem(() => parseBool(value));
      if (reason !== undefined) wrong(`bad value ${show(value)} for option ${show(option)}: ${reason}`);
    } else if (option === "max-allowable-numa-nodes") {
      const reason = textProblem(() => parseInteger(value, 64));
      if (reason !== undefined) wrong(`unable to convert policy option to integer ${show(option)}: ${reason}`);
      else if (parseInteger(value, 64) < 8)
        wrong(`the minimum value of ${show(option)} should not be less than 8, found ${value}`);
    }
  }
}

function textProblem(parse: () => unknown): string | undefined {
  try {
    parse();
    return undefined;
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    return error.message;
  }
}
