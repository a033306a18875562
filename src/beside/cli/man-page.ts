import { optionMeans, optionWords, usageText } from "./help-text.ts";
import type { CommandDescription } from "./table/description.ts";

/** The manual page of all commands, in the language of man(1). */
export function manPage(commands: readonly CommandDescription[], version: string): string {
  return [
    `.TH NODELET 1 "" "nodelet ${version}" "nodelet"`,
    ".SH NAME",
    text("nodelet - a Kubernetes node agent, and commands that explain what it does"),
    ".SH SYNOPSIS",
    `.B nodelet\n${text("COMMAND [OPTIONS]")}`,
    ".br",
    `.B nodelet\n${text("[FLAGS OF THE KUBELET]")}`,
    ".SH DESCRIPTION",
    text(
      "Without a command, nodelet is the node agent itself and takes the flags of the kubelet; nodelet --help lists them. The commands talk to an agent that runs on this machine, through the socket in its root directory, and need root.",
    ),
    ".SH COMMANDS",
    ...commands.flatMap(section),
    ".SH EXIT STATUS",
    ...exitCodes.flatMap(({ code, means }) => item(code, means)),
    "",
  ].join("\n");
}

/** What every command ends with, unless its own table says otherwise. */
const exitCodes: readonly { readonly code: string; readonly means: string }[] = [
  { code: "0", means: "it is done" },
  { code: "1", means: "it failed, or there is no such command; why stands on stderr" },
  { code: "2", means: "it was called in a way it does not understand" },
  { code: "130", means: "it was interrupted (Ctrl-C)" },
];

function section(command: CommandDescription): readonly string[] {
  const { name, description, operands = [], options, examples, exits = [] } = command;
  return [
    `.SS ${text(`nodelet ${name}`)}`,
    ".nf",
    ...usageText(command)
      .replace(/^usage: /, "       ")
      .trimEnd()
      .split("\n")
      .map((line) => text(line.slice(7))),
    ".fi",
    ".PP",
    text(description),
    ...operands.flatMap(({ name: operand, means }) => item(operand, means)),
    ...Object.entries(options).flatMap(([option, described]) =>
      item(optionWords(option, described), optionMeans(described)),
    ),
    ...exits.flatMap(({ code, means }) => item(`Exit status ${code}`, means)),
    ...examples.flatMap(({ line, means }) => item(`Example: nodelet ${line}`, means)),
  ];
}

function item(term: string, means: string): readonly string[] {
  return [".TP", `.B ${text(term)}`, text(means)];
}

/** Text as it is: a line that begins with a dot or a quote, a backslash and a dash mean something to roff. */
function text(plain: string): string {
  return plain
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^([.'])/gm, "\\&$1");
}
