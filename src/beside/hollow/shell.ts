import { type Behaviour, does, failsToStart, type OnTerm, runsForever, type Step } from "./behaviour.ts";

/** What becomes of programs nobody has described. */
export type UnknownPrograms = "runForever" | "failToStart";

/**
 * Reads the command line of a container as the few programs that examples and tests are made of: true, false, sleep,
 * echo, printf, and sh -c with `;`, `&&`, `&`, `exit`, `trap … TERM`, `wait`, `exec`, `while true`, redirections.
 */
export function behaviourOf(commandLine: readonly string[], unknown: UnknownPrograms): Behaviour {
  const [program = "", ...args] = commandLine;
  if (program === "") return runsForever();
  const name = program.replace(/^\/(usr\/)?s?bin\//, "");
  if ((name === "sh" || name === "ash") && args[0] === "-c") {
    const script = compile(args[1] ?? "", unknown);
    return does(script.steps, script.onTerm);
  }
  const steps = simpleCommand([name, ...args]);
  if (steps !== undefined) return does(steps, "unhandled");
  if (unknown === "runForever") return runsForever();
  return failsToStart(
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: " +
      `unable to start container process: exec: "${program}": ${commandNotFound(program)}: unknown`,
  );
}

export function commandNotFound(program: string): string {
  if (program.startsWith("/")) return `stat ${program}: no such file or directory`;
  return "executable file not found in $PATH";
}

interface Script {
  readonly steps: readonly Step[];
  readonly onTerm: OnTerm;
}

function compile(text: string, unknown: UnknownPrograms): Script {
  const steps: Step[] = [];
  const loops: number[] = [];
  let onTerm: OnTerm = "unhandled";
  for (const statement of statements(text)) {
    const words = wordsOf(statement.text);
    if (words[0] === "do") words.shift();
    const [name = "", first = "", second = ""] = words;
    if (name === "") continue;
    if (name === "while") loops.push(steps.length);
    else if (name === "done") steps.push({ do: "goTo", step: loops.pop() ?? 0 });
    else if (name === "trap")
      onTerm = first === "" ? "ignore" : second === "TERM" ? compile(first, unknown).steps : onTerm;
    else if (name === "wait") steps.push({ do: "sleepForever" });
    // What runs in the background is of interest only to `wait`.
    else if (!statement.background) steps.push(...(simpleCommand(words) ?? missing(name, unknown)));
  }
  return { steps, onTerm };
}

function missing(name: string, unknown: UnknownPrograms): Step[] {
  if (unknown === "runForever") return [{ do: "sleepForever" }];
  return [
    { do: "print", stream: "stderr", text: `sh: ${name}: not found\n` },
    { do: "exit", code: 127 },
  ];
}

function simpleCommand(words: readonly string[]): Step[] | undefined {
  const [name, ...rest] = words[0] === "exec" ? words.slice(1) : words;
  const { args, output } = redirected(rest);
  switch (name) {
    case "true":
    case ":":
      return [];
    case "false":
      return [{ do: "exit", code: 1 }];
    case "exit":
      return [{ do: "exit", code: Number(args[0] ?? 0) }];
    case "sleep":
      return [args[0] === "infinity" ? { do: "sleepForever" } : { do: "sleep", ms: Number(args[0]) * 1000 }];
    case "echo":
      return [output(`${args.join(" ")}\n`)];
    case "printf":
      return [output(args.join(" ").replaceAll("\\n", "\n"))];
    default:
      return undefined;
  }
}

/** Takes `>&2`, `> file` and `>> file` off the words. */
function redirected(words: readonly string[]): { args: string[]; output: (text: string) => Step } {
  const args: string[] = [];
  let output = (text: string): Step => ({ do: "print", stream: "stdout", text });
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? "";
    const [, arrow, target] = /^1?(>>?)(.*)$/.exec(word) ?? [];
    if (arrow === undefined || target === undefined) args.push(word);
    else if (target === "&2") output = (text) => ({ do: "print", stream: "stderr", text });
    else {
      const path = target === "" ? (words[++index] ?? "") : target;
      const mode = arrow === ">>" ? "append" : "replace";
      output = (text) => ({ do: "write", path, text, mode });
    }
  }
  return { args, output };
}

/** Splits a script at `;`, newline, `&&` and `&`, but not inside quotes. */
function statements(text: string): { text: string; background: boolean }[] {
  const found: { text: string; background: boolean }[] = [];
  for (const [, statement = "", end = ""] of text.matchAll(/((?:'[^']*'|"[^"]*"|>&|[^;\n&'"])+)(&&|&|;|\n|$)/g)) {
    found.push({ text: statement.trim(), background: end === "&" });
  }
  return found;
}

function wordsOf(statement: string): string[] {
  return [...statement.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2"),
  );
}
