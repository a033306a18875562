// Lives of a simulated node (docs/simulation.md): 200 seeds, fewer minutes of each than `npm run simulate` gives them; that
// a seed repeats to the letter; and that defects which the agent once had are found when they are put back.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { buildSimulation, faultVariable, simulationFlags } from "../../scripts/build-simulation.mjs";
import { plantedFaults } from "./planted-faults.mjs";

const run = promisify(execFile);
const seeds = 200;
const minutes = 3;
const directory = mkdtempSync(join(tmpdir(), "nodelet-simulation-"));
const bundle = await buildSimulation(join(directory, "simulation.mjs"));
const realWait = "await waitFor(signal, (done) => {";
const askingTheRealWorld = {
  file: "src/ground/base/pause.ts",
  find: realWait,
  replace: `setTimeout(() => {}, 1); ${realWait}`,
};
const faultyBundle = await buildSimulation(join(directory, "faulty.mjs"), {
  ...Object.fromEntries(Object.entries(plantedFaults).map(([name, { patches }]) => [name, patches])),
  "asks the real world": [askingTheRealWorld],
});
after(() => rmSync(directory, { recursive: true, force: true }));

/** The outcomes of seeds from `first` on, up to the first that fails. */
async function outcomes(first, count, mins = minutes, fault = undefined) {
  const program = fault === undefined ? bundle : faultyBundle;
  const args = [...simulationFlags(process.versions.node), program, String(first), String(count), String(mins), "stop"];
  const env = { ...process.env, [faultVariable]: fault };
  const { stdout } = await run(process.execPath, args, { env, maxBuffer: 64 * 1024 * 1024 });
  return stdout
    .trim()
    .split("\n")
    .map((line) => {
      const { processorSeconds: _, ...outcome } = JSON.parse(line);
      return outcome;
    });
}

/** All of them, run once, whichever test asks first. */
let everything;
function allOutcomes() {
  everything ??= Promise.all([outcomes(1, seeds / 2), outcomes(1 + seeds / 2, seeds / 2)]);
  return everything.then((halves) => halves.flat());
}

/** The outcome of one seed, of those that were run already where it is among them. */
async function outcomeOf(seed, mins) {
  if (mins !== minutes || seed > seeds) return (await outcomes(seed, 1, mins))[0];
  return (await allOutcomes()).find((outcome) => outcome.seed === seed) ?? { failure: "a seed before it fails" };
}

function explain({ seed, failure, lines }, mins) {
  return `seed ${seed}: ${failure}\n${lines.slice(-60).join("\n")}\nagain: npm run simulate -- --from ${seed} --minutes ${mins}`;
}

test("a seed repeats to the letter, whatever ran before it in the same process", async () => {
  const [[alone], afterOthers] = await Promise.all([outcomes(3, 1), outcomeOf(3, minutes)]);
  assert.deepEqual(afterOthers, alone);
});

test(`${seeds} seeds, ${minutes} simulated minutes each`, async () => {
  const all = await allOutcomes();
  for (const outcome of all) assert.equal(outcome.failure, null, explain(outcome, minutes));
  assert.equal(all.length, seeds);
});

for (const [name, { seeds: finding, minutes: mins, finds }] of Object.entries(plantedFaults)) {
  if (finding.length === 0) continue;
  test(`a planted fault is found: ${name}`, async () => {
    const found = [];
    // A change of the agent may turn an hour into another one; then the next of the seeds that once found it has a try.
    for (const seed of finding) {
      const [[planted], mended] = await Promise.all([outcomes(seed, 1, mins, name), outcomeOf(seed, mins)]);
      assert.equal(mended.failure, null, explain(mended, mins));
      found.push(planted.failure ?? "nothing was found");
      if (finds.test(found.at(-1))) return;
    }
    assert.fail(`seeds ${finding.join(", ")} say: ${found.join("; ")}`);
  });
}

test("what asks the real world is a failure of the simulation", async () => {
  const [outcome] = await outcomes(1, 1, minutes, "asks the real world");
  assert.match(outcome.failure ?? "nothing was found", /not simulated: setTimeout/);
});
