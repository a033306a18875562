// `npm run test:docker`: what needs a real Docker: the CRI contract on the shim, pods on it, kills.
// `npm run test:docker -- contract` runs only the files of test/docker with that in their path.
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { provideDockerd } from "./dockerd.mjs";
import { findKubectl, installKubectl } from "./kubectl.mjs";
import { buildIfStale, installNpmPackages, installPrograms, setupOrExit } from "./setup.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const words = process.argv.slice(2).filter((word) => !word.startsWith("--"));
const options = process.argv.slice(2).filter((word) => word.startsWith("--"));
process.env.NODELET_HOST_SETTINGS = "leave";
setupOrExit(installNpmPackages, () => installPrograms("test"), provideDockerd, installKubectl, buildIfStale);
process.env.NODELET_KUBECTL ??= findKubectl() ?? "kubectl";
const files = readdirSync(join(root, "test/docker"))
  .filter((name) => name.endsWith(".test.ts") && (words.length === 0 || words.some((word) => name.includes(word))))
  .map((name) => join("test/docker", name));
if (files.length === 0) {
  console.error(`nodelet: no file of test/docker has any of "${words.join('", "')}" in its name`);
  process.exit(1);
}
// The longest is the contract: some minutes, and many on a busy machine.
for (const file of files) {
  const command = ["--import", "tsx", "--test", "--test-timeout=1200000", ...options, file];
  const { status } = spawnSync(process.execPath, command, { cwd: root, stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
