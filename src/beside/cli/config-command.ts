import {
  type AgentConfig,
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
import { printAnswer, type WantedOutput } from "./answer.ts";
import { configYaml } from "./config-yaml.ts";
import { defineCommand } from "./define-command.ts";
import { unknownCommand } from "./help-command.ts";
import { commandHelp } from "./help-text.ts";
import type { Command, CommandIo } from "./io.ts";
import { configDescription } from "./table/nodelet-commands.ts";

export const configCommand: Command = (words, io) => configCommandOn(systemIo(io.cwd))(words, io);

/** The command on a given machine. */
export function configCommandOn(machine: ConfigIo): Command {
  return defineCommand(configDescription, async ({ options, rest }, io) => {
    const [first = ""] = rest;
    // Flags may follow, words never: one that stands there was to be a command below this one.
    if (/^[^-]/.test(first)) return unknownCommand(`config ${first}`, io);
    const result = await loadConfig(rest, machine);
    switch (result.kind) {
      case "help":
        io.stdout.write(commandHelp(configDescription));
        return 0;
      case "version":
        io.stdout.write(result.text);
        return 0;
      case "invalid":
        io.stderr.write(describeInvalid(result));
        return 1;
      case "config":
        await showConfig(result.config, options, io, machine);
        return 0;
    }
  });
}

async function showConfig(
  config: AgentConfig,
  options: WantedOutput & { readonly check: boolean },
  io: CommandIo,
  machine: ConfigIo,
): Promise<void> {
  io.stderr.write(describeWarnings(config.warnings));
  const fields = effectiveFields(config);
  const flags = effectiveFlags(config);
  const unheeded = describeUnheeded([...fields, ...flags]) + (await describeOffHere(fields, machine));
  if (options.check) io.stderr.write(unheeded);
  const answer = options.check ? { valid: true } : { settings: fields.map(shown), flags: flags.map(shown) };
  printAnswer(io, options, options.check ? "ConfigCheck" : "Config", answer, () =>
    options.check ? "The configuration is valid.\n" : configYaml(fields, flags) + unheeded,
  );
}

function shown({ name, value, origin, effect }: EffectiveSetting): object {
  return { name, value, origin: describeOrigin(origin), effect };
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
