// Everything that can be said of the code without running it: format and lint, types, import directions, what can hang or
// grow, dead code.
import { spawnSync } from "node:child_process";

const steps = [
  ["format and lint", "node_modules/.bin/biome", ["check", "--error-on-warnings", "."]],
  ["types", "node_modules/.bin/tsc", ["--noEmit"]],
  ["import directions", process.execPath, ["scripts/check-imports.mjs"]],
  ["what can hang or grow", process.execPath, ["scripts/check-hazards.mjs"]],
  ["dead code", "node_modules/.bin/knip", []],
];
let failed = false;
for (const [name, command, args] of steps) {
  const { status } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"] });
  if (status !== 0) {
    console.error(`check failed: ${name}`);
    failed = true;
  }
}
if (failed) process.exit(1);
