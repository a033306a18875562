// `npm run bench NAME [args]`: runs bench/NAME.ts, which prints one line of JSON. Without a name, lists what there is.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { provideDockerd } from "./dockerd.mjs";
import { runNode } from "./run-child.mjs";
import { installPrograms, setupOrExit, setupToRun } from "./setup.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const benchDir = join(root, "bench");
const [name, ...args] = process.argv.slice(2);

if (name === undefined) {
  for (const file of listBenches()) console.log(`${file.slice(0, -3).padEnd(20)} ${purposeOf(file)}`.trimEnd());
} else if (!existsSync(join(benchDir, `${name}.ts`))) {
  const known = listBenches().map((file) => file.slice(0, -3));
  console.error(`nodelet: there is no bench "${name}"; there are: ${known.join(", ") || "none"}`);
  process.exitCode = 1;
} else {
  setupToRun();
  if (name === "dashboard") setupOrExit(() => installPrograms("dashboard"));
  if (name.startsWith("docker-")) setupOrExit(provideDockerd);
  // Agents of benches leave the settings of the machine alone, as those of `nodelet up` do.
  process.env.NODELET_HOST_SETTINGS = "leave";
  const command = ["--import", "tsx", join(benchDir, `${name}.ts`), ...args];
  process.exitCode = await runNode(command, { cwd: root });
}

function listBenches() {
  return existsSync(benchDir) ? readdirSync(benchDir).filter((file) => file.endsWith(".ts")) : [];
}

/** The first comment line of a bench says what it measures. */
function purposeOf(file) {
  return /^\/\/ (.*)/.exec(readFileSync(join(benchDir, file), "utf8"))?.[1] ?? "";
}
