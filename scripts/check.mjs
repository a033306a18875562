// Everything that can be said of the code without running it: format and lint, types, import directions, what can hang or
// grow, whether the simulation has a stand-in for all it needs, dead code. One after the other: the longest of them use all
// cores already, and spin on locks where they share them (three times as long on two cores when all run at once).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

const steps = [
  ["format and lint", "node_modules/.bin/biome", ["check", "--error-on-warnings", "."]],
  ["types", "node_modules/.bin/tsc", ["--noEmit"]],
  ["types of the dashboard's pages", "node_modules/.bin/tsc", ["--noEmit", "-p", "src/beside/dashboard/page"]],
  ["import directions", process.execPath, ["scripts/check-imports.mjs"]],
  ["what can hang or grow", process.execPath, ["scripts/check-hazards.mjs"]],
  ["simulation", process.execPath, ["scripts/check-simulation.mjs"]],
  ["dead code", "node_modules/.bin/knip", []],
];
for (const [name, command, args] of steps) {
  const { status, printed } = await runStep(command, args);
  process.stdout.write(printed);
  if (status === 0) continue;
  console.error(`check failed: ${name}`);
  process.exitCode = 1;
}

async function runStep(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { status, printed: stdout + stderr };
}
