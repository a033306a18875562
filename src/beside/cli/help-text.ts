import { valueWords } from "./read-words.ts";
import {
  type CommandDescription,
  type CommandGroup,
  commandGroups,
  type OperandDescription,
  type OptionDescription,
} from "./table/description.ts";

const widest = 100;

/** How a command is called, in one or more lines. */
export function usageText(command: CommandDescription): string {
  const { name, operands = [], options, takesAgentFlags, passesOn } = command;
  const words = [
    ...operands.map(operandWord),
    ...Object.entries(options).map(([option, described]) => usageWord(option, described)),
    ...(takesAgentFlags ? ["[FLAGS OF THE AGENT]"] : []),
    ...(passesOn === undefined ? [] : [`-- ${passesOn}...`]),
  ];
  const start = `usage: nodelet ${name}`;
  return `${wrapWords([start, ...words], " ".repeat(start.length)).join("\n")}\n`;
}

/** All that is known of a command, for `--help`. */
export function commandHelp(command: CommandDescription): string {
  const { operands = [], options, examples, exits = [] } = command;
  const rows = [
    ...operands.map(({ name, means }) => [name, means] as const),
    ...Object.entries(options).map(([name, option]) => [optionWords(name, option), optionMeans(option)] as const),
  ];
  return [
    usageText(command),
    wrapWords(command.description.split(" "), "").join("\n"),
    "\n",
    definitions(rows),
    exits.length === 0 ? "" : `Exit code:\n${definitions(exits.map(({ code, means }) => [code, means]))}`,
    examples.length === 0
      ? ""
      : `Examples:\n${definitions(examples.map(({ line, means }) => [`nodelet ${line}`, means]))}`,
  ].join("");
}

/** What can be typed after `nodelet`, and what for. */
export function overviewText(commands: readonly CommandDescription[]): string {
  const width = Math.max(...commands.map(({ name }) => name.length));
  const section = (group: string, title: string): string => {
    const own = commands.filter((command) => command.group === group);
    return `${title}:\n${own.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}\n`).join("")}`;
  };
  const groups = Object.entries(commandGroups).filter(([group]) => commands.some((command) => command.group === group));
  return `usage: nodelet COMMAND [OPTIONS]
       nodelet [FLAGS OF THE KUBELET]     the node agent itself; "nodelet --help" lists the flags
${groups.map(([group, title]) => section(group as CommandGroup, title)).join("")}"nodelet help COMMAND" says more about one.
`;
}

/** The option as it is typed: `-o, --output text|json`. */
export function optionWords(name: string, option: OptionDescription): string {
  const value = valueWords(option);
  const short = option.short === undefined ? "" : `-${option.short}, `;
  return `${short}--${name}${value === "" ? "" : ` ${value}`}`;
}

export function optionMeans(option: OptionDescription): string {
  const many = option.type === "texts" ? "; may be given several times" : "";
  const standsIn = "default" in option && option.default !== undefined ? ` (default ${option.default})` : "";
  const needed = option.isRequired ? " (required)" : "";
  return `${option.means}${many}${standsIn}${needed}`;
}

function operandWord({ name, presence }: OperandDescription): string {
  if (presence === "required") return name;
  return presence === "optional" ? `[${name}]` : `[${name}]...`;
}

function usageWord(name: string, option: OptionDescription): string {
  const value = valueWords(option);
  const dashed = option.short === undefined ? `--${name}` : `-${option.short}`;
  const word = value === "" ? dashed : `${dashed} ${value}`;
  const optional = option.isRequired ? word : `[${word}]`;
  return option.type === "texts" ? `${optional}...` : optional;
}

/** Terms with what they mean beside them, or below where a term is long. */
function definitions(rows: readonly (readonly [term: string, means: string])[]): string {
  const width = Math.min(24, Math.max(0, ...rows.map(([term]) => term.length)));
  const indent = " ".repeat(width + 4);
  return rows
    .map(([term, means]) => {
      const lines = wrapWords(means.split(" "), "", widest - indent.length).join(`\n${indent}`);
      return term.length <= width ? `  ${term.padEnd(width)}  ${lines}\n` : `  ${term}\n${indent}${lines}\n`;
    })
    .join("");
}

/** The words in lines of at most `width` columns; all but the first begin with the indent. */
function wrapWords(words: readonly string[], indent: string, width = widest): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of words) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = `${indent}${indent === "" ? "" : " "}${word}`;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
