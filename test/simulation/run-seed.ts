import { untidiness } from "./at-rest.ts";
import { Chaos } from "./chaos.ts";
import { Simulation } from "./simulation.ts";

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
    const { troubleMs, restMs, leaveMs } = partsOf(minutes * 60_000);
    const chaos = new Chaos(simulation, troubleMs);
    chaos.begin();
    await simulation.run(troubleMs);
    if (!witness.hasFailed) await rest(simulation, chaos, restMs, leaveMs);
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
    lines: witness.hasFailed ? trace.lines.slice(-linesShown) : [],
  };
}

/** Rest is as long as the longest back-off twice over where trouble lasts long, and as what hung needs at least. */
function partsOf(ms: number): { readonly troubleMs: number; readonly restMs: number; readonly leaveMs: number } {
  const restMs = Math.min(Math.max(ms * 0.45, 8 * 60_000), 16 * 60_000);
  const leaveMs = Math.min(Math.max(ms * 0.2, 4 * 60_000), 6 * 60_000);
  return { troubleMs: Math.max(60_000, ms - restMs - leaveMs), restMs, leaveMs };
}

async function rest(simulation: Simulation, chaos: Chaos, restMs: number, leaveMs: number): Promise<void> {
  const { witness } = simulation;
  chaos.end();
  await simulation.run(restMs);
  if (witness.hasFailed) return;
  report(simulation, "at rest");
  for (const name of [...simulation.wanted.keys()]) simulation.removePod(name);
  for (let times = 0; times < 6; times++) {
    await simulation.run(leaveMs / 6);
    if (witness.hasFailed) return;
    simulation.releaseFinalizers();
  }
  report(simulation, "after everything has gone");
}

function report(simulation: Simulation, when: string): void {
  const problems = untidiness(simulation);
  if (problems.length > 0) simulation.witness.fail(`${when}: ${problems.join("; ")}`);
}
