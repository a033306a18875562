import { Chaos } from "./chaos.ts";
import { Dice } from "./machine/dice.ts";
import { Simulation } from "./simulation.ts";
import { untidiness } from "./witness/at-rest.ts";
import { ledgerLines } from "./witness/ledgers.ts";

export interface Outcome {
  readonly seed: number;
  readonly failure: string | null;
  /** Stands for everything that happened. */
  readonly digest: string;
  readonly events: number;
  readonly hours: number;
  /** What happened around the fault. */
  readonly lines: readonly string[];
}

const linesShown = 400;

/** A life of a node: trouble for a while, then rest, then everything goes. */
export async function runSeed(seed: number, { minutes }: { readonly minutes: number }): Promise<Outcome> {
  const simulation = await Simulation.begin(seed);
  const { witness, machine, trace } = simulation;
  const onRejection = (error: unknown): void =>
    witness.fail(`an unhandled rejection: ${error instanceof Error ? error.stack : String(error)}`);
  process.on("unhandledRejection", onRejection);
  process.on("uncaughtException", onRejection);
  try {
    simulation.start();
    const parts = partsOf(minutes * 60_000);
    const chaos = new Chaos(simulation, parts.troubleMs);
    chaos.begin();
    await simulation.run(parts.troubleMs);
    if (!witness.hasFailed) await rest(simulation, chaos, parts);
  } finally {
    process.off("unhandledRejection", onRejection);
    process.off("uncaughtException", onRejection);
  }
  return {
    seed,
    failure: witness.failure?.what ?? null,
    digest: trace.digest(),
    events: machine.timeline.events,
    hours: machine.timeline.now / 3_600_000,
    lines: witness.hasFailed ? [...trace.lines.slice(-linesShown), ...ledgerLines(simulation)] : [],
  };
}

/** What is due may wait for the longest back-off twice over, and for what hung before it. */
const mostRestMs = 16 * 60_000;
const mostLeaveMs = 6 * 60_000;

interface Parts {
  readonly troubleMs: number;
  /** At least, for those who wait on although all is well. */
  readonly restMs: number;
  readonly leaveMs: number;
}

function partsOf(ms: number): Parts {
  const restMs = Math.min(Math.max(ms * 0.45, 8 * 60_000), mostRestMs);
  const leaveMs = Math.min(Math.max(ms * 0.2, 4 * 60_000), mostLeaveMs);
  return { troubleMs: Math.max(ms * 0.6, ms - restMs - leaveMs), restMs, leaveMs };
}

async function rest(simulation: Simulation, chaos: Chaos, { restMs, leaveMs }: Parts): Promise<void> {
  const { witness, seed } = simulation;
  // What is well twice in a row mostly stays so; some seeds wait on for what comes late.
  const isPatient = new Dice(seed, "rest").chance(restMs < mostRestMs ? 0.05 : 0.25);
  chaos.end();
  await untilTidy(simulation, isPatient ? restMs : 0, mostRestMs, "at rest");
  if (witness.hasFailed) return;
  for (const name of [...simulation.wanted.keys()]) simulation.removePod(name);
  await untilTidy(simulation, isPatient ? leaveMs : 0, mostLeaveMs, "after everything has gone");
}

const stepMs = 20_000;

async function untilTidy(simulation: Simulation, leastMs: number, mostMs: number, when: string): Promise<void> {
  const { witness } = simulation;
  let tidyLooks = 0;
  let problems: readonly string[] = [];
  for (let restedMs = stepMs; restedMs <= mostMs; restedMs += stepMs) {
    await simulation.run(stepMs);
    if (witness.hasFailed) return;
    simulation.releaseFinalizers();
    problems = untidiness(simulation);
    tidyLooks = problems.length === 0 ? tidyLooks + 1 : 0;
    if (tidyLooks >= 2 && restedMs >= leastMs) return;
  }
  if (problems.length > 0) witness.fail(`${when}: ${problems.join("; ")}`);
}
