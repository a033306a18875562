import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const reporter = fileURLToPath(new URL("./count-reporter.mjs", import.meta.url));
/** What Node says of a whole run; that of one file is of no interest. */
const totals = /^ℹ (?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) .*\n/gm;

/**
 * Runs one test file in a process of its own and says how many of its tests passed, and what they printed. Whatever is not
 * a success is a failure: tests that fail, none at all, a process that dies or is not done in time. `isBeside`: it takes
 * what others leave of the processor.
 */
export async function runTestFile(file, { timeoutMs, isBeside = false, options = [] }) {
  const directory = mkdtempSync(join(tmpdir(), "nodelet-test-"));
  const [countFile, printedFile] = [join(directory, "counts"), join(directory, "printed")];
  const args = [
    "--enable-source-maps",
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${countFile}`,
    ...options,
    file,
  ];
  const [program, first] = isBeside ? ["chrt", ["--idle", "0", process.execPath]] : [process.execPath, []];
  const output = openSync(printedFile, "w");
  // A test of this very file has it, and its tests would talk to that one's runner.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const child = spawn(program, [...first, ...args], { cwd: root, env, stdio: ["ignore", output, output] });
  closeSync(output);
  let isLate = false;
  const deadline = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, timeoutMs);
  const [status, signal] = await once(child, "close");
  clearTimeout(deadline);
  const counted = existsSync(countFile) ? JSON.parse(readFileSync(countFile, "utf8") || "{}") : {};
  const printed = readFileSync(printedFile, "utf8").replaceAll(totals, "");
  rmSync(directory, { recursive: true });
  const { passed = 0, failed = 0, skipped = 0 } = counted;
  const isSuccess = status === 0 && failed === 0 && passed + skipped > 0;
  if (isSuccess || failed > 0) return { passed, failed, skipped, printed };
  const end = isLate ? `was not done within ${timeoutMs / 1000} s` : `ended with ${signal ?? status}`;
  return { passed, failed: 1, skipped, printed: `${printed}the process ${end}, after ${passed} tests that passed\n` };
}
