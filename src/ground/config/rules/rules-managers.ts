import { table } from "../../base/index.ts";
import { tryParseQuantity } from "../../model/index.ts";
import { keyPath } from "../fields/field-kinds.ts";
import { label } from "../fields/fields.ts";
import type { GateName } from "../gates/gate-table.ts";
import { parseBool, parseInteger, TextError } from "../text/go-text.ts";
import { hint } from "../text/nearest.ts";
import { type RuleContext, shown } from "./rule-context.ts";

/** Options of the CPU and topology managers. */
export function checkManagers(context: RuleContext): void {
  checkCpuOptions(context);
  checkStaticCpus(context);
  checkTopologyOptions(context);
}

interface Option {
  readonly gate?: GateName;
  /** Throws TextError with what is wrong. */
  read(text: string): unknown;
}

const beta: Option = { gate: "CPUManagerPolicyBetaOptions", read: parseBool };
const alpha: Option = { gate: "CPUManagerPolicyAlphaOptions", read: parseBool };

const cpuOptions: Readonly<Record<string, Option>> = table({
  "full-pcpus-only": { read: parseBool },
  "strict-cpu-reservation": beta,
  "distribute-cpus-across-numa": beta,
  "prefer-align-cpus-by-uncorecache": beta,
  "align-by-socket": alpha,
  "distribute-cpus-across-cores": alpha,
});

const cpuConflicts = [
  ["full-pcpus-only", "distribute-cpus-across-cores"],
  ["distribute-cpus-across-numa", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"],
  ["prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"],
] as const;

const topologyOptions: Readonly<Record<string, Option>> = table({
  "prefer-closest-numa-nodes": { read: parseBool },
  "max-allowable-numa-nodes": {
    gate: "TopologyManagerPolicyBetaOptions",
    read(text) {
      const count = parseInteger(text, 64);
      if (count < 8) throw new TextError("it should not be less than 8");
      return count;
    },
  },
});

function checkCpuOptions(context: RuleContext): void {
  const { config, invalid } = context;
  const path = "cpuManagerPolicyOptions";
  const options = config.cpuManagerPolicyOptions;
  if (config.cpuManagerPolicy === "none" && Object.keys(options).length > 0) {
    const rule = `must be empty when ${label("cpuManagerPolicy")} is "none"`;
    invalid(path, `${label(path)} ${JSON.stringify(options)} ${rule}`);
    return;
  }
  const values = readOptions(context, path, "CPU Manager", cpuOptions);
  for (const [one, other] of cpuConflicts) {
    if (values.get(one) !== true || values.get(other) !== true) continue;
    invalid(path, `${label(path)}: static policy options ${one} and ${other} can not be used at the same time`);
  }
  if (values.get("align-by-socket") === true && config.topologyManagerPolicy === "single-numa-node") {
    const other = `${label("topologyManagerPolicy")} "single-numa-node"`;
    invalid(path, `${label(path)}: option align-by-socket is incompatible with ${other}`);
  }
}

function checkTopologyOptions(context: RuleContext): void {
  const { config, invalid, isOn } = context;
  const path = "topologyManagerPolicyOptions";
  const options = config.topologyManagerPolicyOptions;
  if (Object.keys(options).length > 0 && !isOn("TopologyManagerPolicyOptions")) {
    const rule = "requires feature gate TopologyManagerPolicyOptions";
    invalid(path, `${label(path)} ${JSON.stringify(options)} ${rule}`);
  }
  readOptions(context, path, "Topology Manager", topologyOptions);
}

/** The values of the options that are known and well written; the others are reported. */
function readOptions(
  { config, invalid, isOn }: RuleContext,
  path: "cpuManagerPolicyOptions" | "topologyManagerPolicyOptions",
  manager: string,
  known: Readonly<Record<string, Option>>,
): ReadonlyMap<string, unknown> {
  const values = new Map<string, unknown>();
  for (const [name, text] of Object.entries(config[path])) {
    const wrong = (reason: string): void => invalid(keyPath(path, name), `${label(path)}: ${reason}`);
    const option = Object.hasOwn(known, name) ? known[name] : undefined;
    if (option === undefined) {
      wrong(`unknown ${manager} Policy option: ${shown(name)}${hint(name, Object.keys(known))}`);
      continue;
    }
    if (option.gate !== undefined && !isOn(option.gate)) {
      wrong(`${manager} Policy option ${shown(name)} provided, but not enabled: it needs feature gate ${option.gate}`);
    }
    try {
      values.set(name, option.read(text));
    } catch (error) {
      if (!(error instanceof TextError)) throw error;
      wrong(`bad value ${shown(text)} for option ${shown(name)}: ${error.message}`);
    }
  }
  return values;
}

function checkStaticCpus({ config, invalid }: RuleContext): void {
  // CPUs reserved by number are checked where their list is.
  if (config.cpuManagerPolicy !== "static" || config.reservedSystemCPUs !== "") return;
  const amounts = [config.systemReserved["cpu"], config.kubeReserved["cpu"]];
  if (amounts.some((text) => (tryParseQuantity(text ?? "0") ?? 0n) > 0n)) return;
  const rule = "the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero";
  const remedy = `set ${label("systemReserved")}, ${label("kubeReserved")} or ${label("reservedSystemCPUs")}`;
  invalid("cpuManagerPolicy", `${label("cpuManagerPolicy")} "static": ${rule}; ${remedy}`);
}
