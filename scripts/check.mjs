// Everything that can be said of the code without running it: format and lint, types, import directions, what can hang or
// grow, dead code. All at once, as most of them use one core.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

const steps = [
  ["format and lint", "node_modules/.bin/biome", ["check", "--error-on-warnings", "."]],
  ["types", "node_modules/.bin/tsc", ["--noEmit"]],
  ["import directions", process.execPath, ["scripts/check-imports.mjs"]],
  ["what can hang or grow", process.execPath, ["scripts/check-hazards.mjs"]],
  ["dead code", "node_modules/.bin/knip", []],
];
const results = await Promise.all(steps.map(([name, command, args]) => runStep(name, command, args)));
for (const { name, status, printed } of results) {
  process.stdout.write(printed);
  if (status === 0) continue;
  console.error(`check failed: ${name}`);
  process.exitCode = 1;
}

async function runStep(name, command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { name, status, printed: stdout + stderr };
}
