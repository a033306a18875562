// One process of the simulation: runs seeds and prints a line of JSON for each.
import { machine } from "./machine/machine.ts";
import { runSeed } from "./run-seed.ts";

forbidRealTime();
let processorSecondsBefore = 0;
const [from = "1", count = "1", minutes = "60", whenFailed = "go on", stacks = "none"] = process.argv.slice(2);
// Most errors are expected. Only who looks into a failure reads where they were made; to note it costs time.
Error.stackTraceLimit = stacks === "none" ? 0 : 10;
for (let seed = Number(from); seed < Number(from) + Number(count); seed++) {
  const outcome = await runSeed(seed, { minutes: Number(minutes) });
  process.stdout.write(`${JSON.stringify({ ...outcome, processorSeconds: processorSeconds() })}\n`);
  if (outcome.failure !== null && whenFailed === "stop") break;
}
process.exit(0);

/** Since it was last asked: all threads of this process, those that compile too. Says more than a clock where others work. */
function processorSeconds(): number {
  const { user, system } = process.cpuUsage();
  const seconds = (user + system) / 1e6;
  const since = seconds - processorSecondsBefore;
  processorSecondsBefore = seconds;
  return since;
}

/** Whoever still asks the real world for time or chance would make runs differ. */
function forbidRealTime(): void {
  Math.random = () => machine().ids.number();
  Date.now = () => Math.floor(machine().timeline.wallNow());
  for (const name of ["setTimeout", "setInterval", "setImmediate"] as const) {
    Object.defineProperty(globalThis, name, {
      value: () => {
        machine().escapes.push(`${name} was called: ${new Error("here").stack}`);
        return undefined;
      },
    });
  }
}
