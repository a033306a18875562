import {
  type ConfigIo,
  type ConfigWarning,
  describeConfigProblem,
  describeOrigin,
  type Effect,
  type EffectiveSetting,
  effectiveFields,
  effectiveFlags,
  type InvalidConfig,
  loadConfig,
  systemIo,
} from "../../ground/config/index.ts";
import { configYaml } from "./config-yaml.ts";
import type { Command, CommandIo } from "./io.ts";

const usage = `usage: nodelet config [--check] [flags of the agent...]
Shows the configuration that the agent would start with, as YAML, and where each value comes from.
  --check   only check it: say every problem, exit with 0 when there is none and with 1 otherwise
Give the flags the agent gets, such as --config=/etc/kubernetes/kubelet.yaml. "nodelet --help" lists them.
`;

export const configCommand: Command = (args, io) => runConfigCommand(args, io, systemIo(io.cwd));

/** The command on a given machine. */
export async function runConfigCommand(
  args: readonly string[],
  io: Pick<CommandIo, "stdout" | "stderr">,
  machine: ConfigIo,
): Promise<number> {
  const argv = args.filter((arg) => arg !== "--check");
  const result = await loadConfig(argv, machine);
  switch (result.kind) {
    case "help":
      io.stdout.write(usage);
      return 0;
    case "version":
      io.stdout.write(result.text);
      return 0;
    case "invalid":
      io.stderr.write(describeInvalid(result));
      return 1;
    case "config": {
      io.stderr.write(describeWarnings(result.config.warnings));
      const fields = effectiveFields(result.config);
      const flags = effectiveFlags(result.config);
      const unheeded = describeUnheeded([...fields, ...flags]) + (await describeOffHere(fields, machine));
      if (args.length === argv.length) io.stdout.write(configYaml(fields, flags) + unheeded);
      else {
        io.stderr.write(unheeded);
        io.stdout.write("The configuration is valid.\n");
      }
      return 0;
    }
  }
}

function describeInvalid({ step, problems, warnings }: InvalidConfig): string {
  const lines = problems.map((problem) => `  ${describeConfigProblem(problem)}\n`).join("");
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return `${describeWarnings(warnings)}nodelet config: ${count}${step === "" ? ":" : `, ${step.trimEnd()}`}\n${lines}`;
}

function describeWarnings(warnings: readonly ConfigWarning[]): string {
  return warnings.map(({ message }) => `warning: ${message}\n`).join("");
}

const systemBus = "/run/dbus/system_bus_socket";

/** What the user sets although this machine has not what it takes. */
async function describeOffHere(settings: readonly EffectiveSetting[], machine: ConfigIo): Promise<string> {
  const own = settings.filter(({ name, origin }) => /^shutdownGrace/.test(name) && origin.from !== "default");
  if (own.length === 0 || (await machine.kindOf(systemBus).catch(() => undefined)) !== undefined) return "";
  const title = `Not in effect on this machine: there is no system bus at ${systemBus}, so logind can't be asked to wait.`;
  return `# ${title}\n${own.map(({ name, origin }) => `#   ${name} (${describeOrigin(origin)})\n`).join("")}`;
}

/** What the user sets although nothing comes of it. */
export function describeUnheeded(settings: readonly EffectiveSetting[]): string {
  const list = (effect: Effect, title: string): string => {
    const own = settings.filter((setting) => setting.effect === effect && setting.origin.from !== "default");
    if (own.length === 0) return "";
    return `# ${title}\n${own.map(({ name, origin }) => `#   ${name} (${describeOrigin(origin)})\n`).join("")}`;
  };
  return (
    list("not yet", "Not yet in effect: read and checked, but no part of nodelet acts on these yet.") +
    list("none", "Without effect, as in the kubelet:")
  );
}
