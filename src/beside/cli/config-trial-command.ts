import { readFile } from "node:fs/promises";
import { isJson, printAnswer, type WantedOutput } from "./answer.ts";
import { pathFrom } from "./command.ts";
import { type ChangeRow, changesText, historyText, type RolloutAnswer, trialProgress } from "./config-trial-text.ts";
import { defineCommand } from "./define-command.ts";
import type { CommandIo } from "./io.ts";
import { askAgent } from "./running-agent.ts";
import {
  configBackDescription,
  configDiffDescription,
  configHistoryDescription,
  configKeepDescription,
  configTryDescription,
} from "./table/config-commands.ts";
import { unreadable } from "./unreadable.ts";
import { visible } from "./visible-text.ts";

/** How long the agent may take to begin anew before its silence is worth a word. */
const patienceMs = 60_000;
const lookEveryMs = 250;

interface AgentOption {
  readonly "root-dir": string | undefined;
}

/** What has become of a trial, for programs. */
type TrialOutcome =
  | { readonly state: "works"; readonly remainingMs: number; readonly changes: readonly ChangeRow[] }
  | { readonly state: "kept"; readonly changes?: readonly ChangeRow[] }
  | { readonly state: "back" };

/** What would change with a file. */
export const configDiffCommand = defineCommand(configDiffDescription, async ({ options, operands }, io) => {
  const { path, text } = await readOperand(operands, io);
  const question = `/rollout/diff?path=${encodeURIComponent(path)}`;
  const answer = await askAgent(io, options, (client) => client.post(question, text, io.signal));
  const { changes } = JSON.parse(answer) as { readonly changes: readonly ChangeRow[] };
  printAnswer(io, options, "ConfigDifferences", { changes }, () => changesText(changes));
  return 0;
});

/** Runs with a file for a while. */
export const configTryCommand = defineCommand(configTryDescription, async ({ options, operands }, io) => {
  const { path, text } = await readOperand(operands, io);
  const question = `/rollout/try?path=${encodeURIComponent(path)}&forMs=${options.for}`;
  const answer = await askAgent(io, options, (client) => client.post(question, text, io.signal));
  const { version, changes } = JSON.parse(answer) as {
    readonly version: string;
    readonly changes: readonly ChangeRow[];
  };
  if (!isJson(options)) io.stdout.write(visible(changesText(changes)));
  const outcome = await watchTrial(version, options, io);
  const say = (text: string): void => printTrial(io, options, version, { ...outcome, changes }, text);
  if (outcome.state === "kept") say("It was kept meanwhile.\n");
  else {
    const seconds = Math.round(outcome.remainingMs / 1000);
    say(`The agent runs with it and works. It goes back in ${seconds} s unless you say "nodelet config keep".\n`);
  }
  return 0;
});

function printTrial(io: CommandIo, options: WantedOutput, version: string, outcome: TrialOutcome, text: string): void {
  printAnswer(io, options, "ConfigTrial", { version, ...outcome }, () => text);
}

/** Says how the trial begins: it works, was taken back, or had to make way for something else. */
async function watchTrial(
  version: string,
  options: AgentOption,
  io: CommandIo,
): Promise<{ readonly state: "works"; readonly remainingMs: number } | { readonly state: "kept" }> {
  const deadline = io.clock.monotonic() + patienceMs;
  for (let hasBegun = false; ; ) {
    await io.clock.sleep(lookEveryMs, io.signal);
    const isLate = io.clock.monotonic() > deadline;
    const report = await rollout(options, io).catch((error: unknown) => {
      // It closes its socket while it begins anew.
      if (io.signal.aborted || isLate) throw error;
      return undefined;
    });
    const progress = trialProgress(version, report, hasBegun);
    hasBegun ||= report?.trial?.version === version;
    if (progress.is === "over") throw new Error(progress.why);
    if (progress.is === "works") return { state: "works", remainingMs: progress.remainingMs };
    if (progress.is === "kept") return { state: "kept" };
    if (isLate) throw new Error(`it does not work yet: ${progress.why}; see "nodelet config history"`);
  }
}

/** Stays with what is being tried. */
export const configKeepCommand = defineCommand(configKeepDescription, async ({ options }, io) => {
  const version = await decideTrial("/rollout/keep", options, io);
  printTrial(io, options, version, { state: "kept" }, "It stays, until the files of the agent say something new.\n");
  return 0;
});

/** Goes back before the time of the trial is over. */
export const configBackCommand = defineCommand(configBackDescription, async ({ options }, io) => {
  const version = await decideTrial("/rollout/back", options, io);
  printTrial(io, options, version, { state: "back" }, "The agent goes back to what it ran with before.\n");
  return 0;
});

/** Which trial it was: once it is decided the agent may begin anew, and not answer for a moment. */
async function decideTrial(path: string, options: AgentOption, io: CommandIo): Promise<string> {
  const { trial, active } = await rollout(options, io);
  await askAgent(io, options, (client) => client.post(path, "", io.signal));
  return trial?.version ?? active.version;
}

/** What was tried, kept and taken back. */
export const configHistoryCommand = defineCommand(configHistoryDescription, async ({ options }, io) => {
  const report = await rollout(options, io);
  printAnswer(io, options, "ConfigHistory", report, () => historyText(report));
  return 0;
});

function rollout(options: AgentOption, io: CommandIo): Promise<RolloutAnswer> {
  return askAgent(io, options, (client) => client.rollout(io.signal));
}

async function readOperand(operands: readonly string[], io: CommandIo): Promise<{ path: string; text: string }> {
  const path = pathFrom(io, operands[0] ?? "");
  try {
    return { path, text: await readFile(path, "utf8") };
  } catch (error) {
    throw unreadable(error, path);
  }
}
