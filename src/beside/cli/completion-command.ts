import { withDeadline } from "../../ground/base/index.ts";
import { type CompletionSource, completeLine } from "./complete-line.ts";
import { completionScripts } from "./completion-scripts.ts";
import { defineCommand } from "./define-command.ts";
import { type CommandIo, UsageError } from "./io.ts";
import { askAgent } from "./running-agent.ts";
import { completeDescription, completionDescription } from "./table/nodelet-commands.ts";
import { visibleLine } from "./visible-text.ts";

/** The script that makes a shell ask us. */
export const completionCommand = defineCommand(completionDescription, async ({ operands: [shell = ""] }, io) => {
  const script = completionScripts.get(shell);
  if (script === undefined) throw new UsageError(`SHELL is bash or zsh, found ${visibleLine(shell.slice(0, 100))}`);
  io.stdout.write(script);
  return 0;
});

/** Nobody waits longer for a tab. */
const withinMs = 1000;

/** What the scripts call: the line up to the cursor in, possibilities out. Silent when there is nothing to say. */
export const completeCommand = defineCommand(completeDescription, async ({ rest: [line = ""] }, io) => {
  const words = line.split(/\s+/).slice(1);
  const found = await completeLine(words, agentSource(io));
  if (found === "directories") io.stdout.write(":directories\n");
  else for (const { word, means } of found) io.stdout.write(means === undefined ? `${word}\n` : `${word}\t${means}\n`);
  return 0;
});

function agentSource(io: CommandIo): CompletionSource {
  const ask = async (
    rootDir: string | undefined,
    question: (
      client: Parameters<Parameters<typeof askAgent>[2]>[0],
      signal: AbortSignal,
    ) => Promise<readonly string[]>,
  ): Promise<readonly string[]> => {
    const late = (): Error => new Error("no answer in time");
    try {
      return await withDeadline(io.clock, withinMs, late, io.signal, (signal) =>
        askAgent(io, { "root-dir": rootDir }, (client) => question(client, signal)),
      );
    } catch {
      // Without an agent there are no names to offer, and a prompt is no place for complaints.
      return [];
    }
  };
  return {
    pods: (rootDir) =>
      ask(rootDir, async (client, signal) => {
        const names = (await client.pods(signal)).map(({ metadata }) => metadata ?? {});
        const plain = names.map(({ name = "" }) => name);
        // A name that several namespaces have needs its namespace.
        return names.map(({ namespace = "default", name = "" }) => {
          return plain.filter((other) => other === name).length > 1 ? `${namespace}/${name}` : name;
        });
      }),
    containers: (pod, rootDir) =>
      ask(rootDir, async (client, signal) => {
        const { containers = [], initContainers = [] } = (await client.pod(pod, signal)).spec ?? {};
        return [...containers, ...initContainers].map(({ name }) => name);
      }),
  };
}
