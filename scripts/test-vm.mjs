// `npm run test:vm`: tests that need a machine of their own: systemd, cgroup v2, swap, NUMA, reboots and power cuts.
// `npm run test:vm -- slices` runs only the files of test/vm with that in their name, `-- all` every one;
// `--power-cuts 20` cuts more often.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { buildIfStale, installNpmPackages, installPrograms, SetupError, setupOrExit } from "./setup.mjs";

const usage = `usage: npm run test:vm -- [--power-cuts N] [--seed N] [WORD…]
Boots virtual machines and tests nodelet in them. Needs root, Debian on x86-64, 3 GB of disk below /var/tmp (or
NODELET_VM_DIR), 4 GB of memory, and Debian packages (qemu-system-x86, debootstrap, e2fsprogs), which it installs.
Meant to take 10 minutes where nothing else runs (a busy machine needs several times that), and 5 more the first time,
when it makes the machine's root file system from packages. With "all" it takes an hour.
  --power-cuts N  how often the power is cut (default 2; a cut takes a minute or several)
  --seed N        for the moments of the cuts (default: a new one, which is printed)
  WORD            files of test/vm with this in their name; "all" for every one; none for those that fit into 10 minutes
Environment: NODELET_VM_DIR, NODELET_VM_SUITE, NODELET_VM_MIRROR, NODELET_VM_ACCEL (kvm or tcg).`;

const root = fileURLToPath(new URL("..", import.meta.url));
/** An emulated machine keeps about one processor busy, and every file has its own. */
const machinesAtOnce = Math.min(2, availableParallelism());
/** What every change should pass: the machine itself, slices, the service, stats, kills, reboots and power cuts. */
const withinTenMinutes = ["machine", "power-cut", "service", "slices", "stats"].map((name) => `${name}.test.ts`);
/** A file boots several machines, each within minutes when the host is busy, and starts twenty pods on one of them. */
const fileTimeoutMs = 75 * 60_000;

const { values, positionals } = readArguments();
if (values.help) {
  console.log(usage);
  process.exit(0);
}
console.error(usage.split("\n").slice(1, 4).join("\n"));
const began = performance.now();
setupOrExit(
  requireRoot,
  installNpmPackages,
  () => installPrograms("run"),
  () => installPrograms("vm"),
  buildIfStale,
);
const present = readdirSync(join(root, "test/vm"))
  .filter((name) => name.endsWith(".test.ts"))
  .sort();
const chosen = present.filter(isAskedFor);
const files = chosen.map((name) => join("test/vm", name));
if (files.length === 0) {
  console.error(`nodelet: no file of test/vm has any of "${positionals.join('", "')}" in its name`);
  process.exit(1);
}
if (chosen.length < present.length) {
  const others = present.filter((name) => !chosen.includes(name)).map((name) => name.replace(/\.test\.ts$/, ""));
  console.error(`nodelet: not run this time (name them, or say "all"): ${others.join(", ")}`);
}
process.exitCode = (await node("--import", "tsx", "test/vm/machine/prepare.ts")) || (await runTests());
sweep();
console.log(`${process.exitCode === 0 ? "passed" : "failed"} in ${Math.round((performance.now() - began) / 1000)} s`);

function isAskedFor(name) {
  if (positionals.length === 0) return withinTenMinutes.includes(name);
  return positionals.some((word) => word === "all" || name.includes(word));
}

async function runTests() {
  const seed = values.seed ?? String(Math.floor(Math.random() * 2 ** 31));
  console.error(`nodelet: ${files.length} files, power cuts: ${values["power-cuts"]}, seed: ${seed}`);
  process.env.NODELET_VM_SEED = seed;
  process.env.NODELET_VM_POWER_CUTS = values["power-cuts"];
  const limits = [
    `--test-concurrency=${machinesAtOnce}`,
    `--test-timeout=${Number(values["power-cuts"]) * 300_000 + fileTimeoutMs}`,
  ];
  return await node("--import", "tsx", "--test", ...limits, "--test-reporter=spec", ...files);
}

/** Disks of machines whose test was killed. */
function sweep() {
  spawnSync(process.execPath, ["--import", "tsx", "test/vm/machine/sweep.ts"], { cwd: root, stdio: "inherit" });
}

/** Signals of the terminal reach the child as well; we wait for it, and it ends its machines. */
async function node(...args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
  const ignored = () => {};
  const passedOn = () => child.kill("SIGTERM");
  process.on("SIGINT", ignored).on("SIGTERM", passedOn);
  const [code, signal] = await once(child, "close");
  process.off("SIGINT", ignored).off("SIGTERM", passedOn);
  if (signal !== null) console.error(`nodelet: the tests were ended by ${signal}, from outside`);
  return code ?? 1;
}

function requireRoot() {
  if (process.getuid() !== 0) throw new SetupError("Making a root file system needs root (chroot).");
  if (process.arch !== "x64") throw new SetupError(`The virtual machine is x86-64, this machine is ${process.arch}.`);
}

function readArguments() {
  try {
    const options = {
      "power-cuts": { type: "string", default: "2" },
      seed: { type: "string" },
      help: { type: "boolean" },
    };
    const parsed = parseArgs({ options, allowPositionals: true });
    for (const name of ["power-cuts", "seed"]) {
      const text = parsed.values[name] ?? "0";
      if (!/^\d{1,10}$/.test(text)) throw new Error(`--${name} wants a number, found "${text}"`);
    }
    return parsed;
  } catch (error) {
    console.error(`nodelet: ${error.message}\n${usage}`);
    process.exit(1);
  }
}
