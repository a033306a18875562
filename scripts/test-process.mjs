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

/** More than any test needs. Without a bound the whole machine runs short, and whoever is at work beside it dies as well. */
const usualMostMb = 6 * 1024;
const lookMs = 1_000;

/**
 * Runs one test file in a process of its own and says how many of its tests passed, and what they printed. Whatever is not
 * a success is a failure: tests that fail, none at all, a process that dies, is not done in time or takes too much memory;
 * of the last two it is told where they were, if they still can. `isBeside`: it takes what others leave of the processor.
 */
export async function runTestFile(file, { timeoutMs, isBeside = false, options = [], mostMb = usualMostMb }) {
  const directory = mkdtempSync(join(tmpdir(), "nodelet-test-"));
  const [countFile, printedFile] = [join(directory, "counts"), join(directory, "printed")];
  const args = [
    "--enable-source-maps",
    "--test-reporter=spec",
    "--test-reporter-destination=stdout",
    `--test-reporter=${reporter}`,
    `--test-reporter-destination=${countFile}`,
    "--report-on-signal",
    `--report-directory=${directory}`,
    "--report-filename=where",
    ...options,
    file,
  ];
  const [program, first] = isBeside ? ["chrt", ["--idle", "0", process.execPath]] : [process.execPath, []];
  const output = openSync(printedFile, "w");
  // A test of this very file has it, and its tests would talk to that one's runner.
  const { NODE_TEST_CONTEXT, ...env } = process.env;
  const child = spawn(program, [...first, ...args], { cwd: root, env, stdio: ["ignore", output, output] });
  closeSync(output);
  let problem;
  let where = "";
  const giveUp = async (why) => {
    if (problem !== undefined) return;
    problem = why;
    where = await whereItIs(child, join(directory, "where"));
    child.kill("SIGKILL");
  };
  const deadline = setTimeout(() => void giveUp(`was not done within ${timeoutMs / 1000} s`), timeoutMs);
  const looks = setInterval(() => {
    if (residentMb(child.pid) > mostMb) void giveUp(`took more than ${mostMb} MB`);
  }, lookMs);
  const [status, signal] = await once(child, "close");
  clearTimeout(deadline);
  clearInterval(looks);
  const counted = existsSync(countFile) ? JSON.parse(readFileSync(countFile, "utf8") || "{}") : {};
  const printed = readFileSync(printedFile, "utf8").replaceAll(totals, "");
  rmSync(directory, { recursive: true });
  const { passed = 0, failed = 0, skipped = 0 } = counted;
  const isSuccess = status === 0 && failed === 0 && passed + skipped > 0;
  if (isSuccess || failed > 0) return { passed, failed, skipped, printed };
  const end = problem ?? `ended with ${signal ?? status}`;
  return {
    passed,
    failed: 1,
    skipped,
    printed: `${printed}the process ${end}, after ${passed} tests that passed\n${where}`,
  };
}

function residentMb(pid) {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;
  } catch {
    // It has just ended.
    return 0;
  }
}

/** What the process does at the moment, by Node's own report; nothing where its loop does not turn. */
async function whereItIs(child, reportFile) {
  child.kill("SIGUSR2");
  for (let tries = 0; tries < 100; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    try {
      const { javascriptStack, javascriptHeap, resourceUsage, libuv } = JSON.parse(readFileSync(reportFile, "utf8"));
      const open = libuv.filter(({ is_active: isActive }) => isActive).map(({ type, ...more }) => describe(type, more));
      const memory = `${javascriptHeap.usedMemory} bytes of heap, resident ${resourceUsage.rss}`;
      return [`where it was: ${memory}`, ...(javascriptStack.stack ?? []), `open: ${open.join(", ")}`, ""].join("\n");
    } catch {
      // Not there yet, or not whole.
    }
  }
  return "";
}

function describe(type, { localEndpoint, remoteEndpoint, pid, writeQueueSize }) {
  const ends = [localEndpoint, remoteEndpoint].flatMap((end) => (end?.port === undefined ? [] : [end.port]));
  const more = [pid, ...ends, writeQueueSize > 0 && `${writeQueueSize} bytes wait`].filter(Boolean);
  return more.length === 0 ? type : `${type} (${more.join(" ")})`;
}
