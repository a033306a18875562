import type { Command, CommandIo } from "./io.ts";

/** What can be typed after `nodelet`, and what for. */
const commands: readonly (readonly [name: string, purpose: string])[] = [
  ["up", "run the pods of a directory on this machine, with an API server for kubectl"],
  ["down", "stop and remove all that `up` made"],
  ["why", "say what a pod is waiting for and what happened to it"],
  ["blame", "say where the time of a pod's start went"],
  ["resources", "say who has which CPUs and memory of this machine, and why"],
  ["shutdown", "say what would happen to the pods if this machine were turned off"],
  ["evict", "say which pods would be evicted, in which order and why"],
  ["gc", "say which images, dead containers and logs would be removed, and who keeps the others"],
  ["drain", "say what emptying this node would do"],
  ["config", "show or check the configuration that the agent would start with"],
  ["api-server", "a small Kubernetes API server for one machine"],
  ["run-once", "run the pods of the manifests once and end"],
  ["version", "say which version this is"],
  ["help", "say this, or more about a command"],
];

const width = Math.max(...commands.map(([name]) => name.length));

const overview = `usage: nodelet COMMAND [OPTIONS]
       nodelet [FLAGS OF THE KUBELET]     the node agent itself; "nodelet --help" lists the flags
Commands:
${commands.map(([name, purpose]) => `  ${name.padEnd(width)}  ${purpose}\n`).join("")}"nodelet help COMMAND" says more about one.
`;

/** Runs a command by its name; undefined when it has none of that name. */
export type RunByName = (name: string, args: readonly string[]) => Promise<number> | undefined;

export function helpCommand(run: RunByName): Command {
  return async (args, io) => {
    const [name, ...more] = args.filter((arg) => arg !== "--help" && arg !== "-h");
    if (name === undefined || name === "help") {
      io.stdout.write(overview);
      return 0;
    }
    if (more.length > 0) {
      io.stderr.write(`nodelet help: one command at a time, found ${[name, ...more].join(" ")}\n`);
      return 2;
    }
    return (await run(name, ["--help"])) ?? unknownCommand(name, io);
  };
}

/** Says that there is no such command, and which one may have been meant. */
export function unknownCommand(name: string, io: Pick<CommandIo, "stderr">): number {
  const meant = closest(name);
  const hint = meant === undefined ? "" : `; did you mean "nodelet ${meant}"?`;
  io.stderr.write(`nodelet: unknown command ${name.slice(0, 100)}${hint}\n"nodelet help" lists the commands.\n`);
  return 1;
}

/** More slips than this, and it is another word. */
const mostSlips = 2;

function closest(typed: string): string | undefined {
  if (typed.length > 20) return undefined;
  const ranked = commands
    .map(([name]) => ({ name, slips: slipsBetween(typed.toLowerCase(), name) }))
    .sort((a, b) => a.slips - b.slips);
  const [best] = ranked;
  if (best !== undefined && best.slips <= mostSlips && best.slips < best.name.length) return best.name;
  return typed.length >= 3 ? commands.find(([name]) => name.startsWith(typed.toLowerCase()))?.[0] : undefined;
}

/** How many letters must be added, left out or changed (Levenshtein), two that changed places counting as one. */
function slipsBetween(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const changed = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, changed, swapped));
    }
  }
  return at(a.length, b.length);
}
