// Brings a machine with only Node and npm to where nodelet runs: npm packages, programs, and the built agent.
// Does only what is missing, so a second run takes no time and no network. Uses nothing but Node itself.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const oldestNode = 20;

/** Debian packages and the files that show they are there; on other systems the files may come from elsewhere. */
const runPackages = [
  { name: "containerd", found: () => ["containerd", "ctr", "containerd-shim-runc-v2"].every(onPath) },
  { name: "runc", found: () => onPath("runc") },
  {
    name: "containernetworking-plugins",
    found: () => ["/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"].some((dir) => existsSync(join(dir, "bridge"))),
  },
  { name: "iptables", found: () => ["iptables", "iptables-save", "iptables-restore"].every(onPath) },
  { name: "iproute2", found: () => onPath("ip") },
  { name: "busybox-static", found: () => ["/bin/busybox", "/usr/bin/busybox"].some(isStatic) },
];
const testPackages = [
  { name: "docker-registry", found: () => onPath("docker-registry") },
  { name: "openssl", found: () => onPath("openssl") },
];
const vmPackages = [
  { name: "qemu-system-x86", found: () => onPath("qemu-system-x86_64") },
  { name: "debootstrap", found: () => onPath("debootstrap") },
  { name: "e2fsprogs", found: () => onPath("mke2fs") },
  { name: "util-linux", found: () => ["mkswap", "setpriv"].every(onPath) },
];
const dashboardPackages = [
  { name: "chromium-headless-shell", found: () => onPath("chromium-headless-shell") },
  { name: "zsh", found: () => onPath("zsh") },
];
const packagesFor = {
  run: runPackages,
  test: [...runPackages, ...testPackages],
  vm: vmPackages,
  dashboard: [...runPackages, ...dashboardPackages],
};

/** Something a person has to do before setup can go on; the message says what. */
export class SetupError extends Error {}

/** The names of Debian packages that are needed and not there. */
export function missingPackages(use) {
  return packagesFor[use].filter(({ found }) => !found()).map(({ name }) => name);
}

function checkNode() {
  const [major] = process.versions.node.split(".").map(Number);
  if (major < oldestNode) {
    throw new SetupError(`Node ${process.versions.node} is too old: nodelet needs Node ${oldestNode} or newer.`);
  }
}

export function installNpmPackages() {
  checkNode();
  const lock = readJson(join(root, "package-lock.json"));
  const installed = readJson(join(root, "node_modules", ".package-lock.json"));
  if (installed !== undefined && packagesMatch(lock, installed)) return;
  say("installing npm packages (npm ci)");
  const { status } = spawnSync("npm", ["ci", "--include=dev"], { cwd: root, stdio: ["ignore", 2, 2] });
  if (status !== 0)
    throw new SetupError('"npm ci" failed, see above. Check the network and the npm registry, then try again.');
}

/** True when what npm installed is what the lock file asks for. Optional packages of other platforms may be absent. */
export function packagesMatch(lock, installed) {
  return Object.entries(lock.packages).every(([path, wanted]) => {
    const found = installed.packages[path];
    if (path === "" || wanted.link) return true;
    if (found === undefined) return wanted.optional === true || wanted.devOptional === true;
    return found.version === wanted.version;
  });
}

/** Installs the programs that `use`, "run", "test", "vm" or "dashboard", needs. */
export function installPrograms(use) {
  const missing = missingPackages(use);
  if (missing.length === 0) return;
  const install = ["apt-get", "install", "-y", "--no-install-recommends", ...missing];
  const byHand = `apt-get update && ${install.join(" ")}`;
  if (process.getuid() !== 0) {
    throw new SetupError(
      `These programs are missing: ${missing.join(", ")}.\nInstall them with:\n\n  sudo sh -c '${byHand}'\n`,
    );
  }
  if (!onPath("apt-get")) {
    throw new SetupError(
      `These programs are missing: ${missing.join(", ")} (names of Debian packages). Install them, then try again.`,
    );
  }
  say(`installing Debian packages: ${missing.join(", ")}`);
  // A machine that was just started updates itself: its lists are locked, and new; its packages are free in a minute.
  if (!runsWell("apt-get", ["update"]))
    say("the lists of packages could not be renewed, see above; going on with those here");
  const [program, ...args] = install;
  if (!runsWell(program, ["-o", `DPkg::Lock::Timeout=${aptWaitsSeconds}`, ...args]))
    throw new SetupError(`"${install.join(" ")}" failed, see above. By hand it is: ${byHand}`);
  const still = missingPackages(use);
  if (still.length > 0) throw new SetupError(`Still missing after the installation: ${still.join(", ")}.`);
}

const aptWaitsSeconds = 180;

function runsWell(program, args) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  return spawnSync(program, args, { stdio: ["ignore", 2, 2], env }).status === 0;
}

export function buildIfStale() {
  const stamp = join(root, "dist", ".inputs");
  const inputs = inputsHash();
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === inputs) return;
  say("building dist/");
  const { status } = spawnSync(process.execPath, ["scripts/build.mjs"], { cwd: root, stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new SetupError("The build failed, see above.");
  writeFileSync(stamp, inputs);
}

/** Changes whenever a file that goes into dist/ is added, removed or written. */
function inputsHash() {
  const sources = readdirSync(join(root, "src"), { recursive: true })
    .filter((file) => /\.(?:tsx?|css|svg|html)$/.test(file) && !file.endsWith(".test.ts"))
    .map((file) => join("src", file));
  const hash = createHash("sha256");
  for (const file of [...sources, "scripts/build.mjs", "scripts/build-dashboard.mjs", "package-lock.json"].sort()) {
    const { size, mtimeMs } = statSync(join(root, file));
    hash.update(`${file} ${size} ${mtimeMs}\n`);
  }
  return hash.digest("hex");
}

function onPath(program) {
  // A user's PATH often lacks the directories of the administrator, where iptables and ip live.
  const directories = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin", "/sbin", "/usr/bin", "/bin"];
  return directories.some((directory) => existsSync(join(directory, program)));
}

/** True for a program that needs no loader: images are made of it alone. */
function isStatic(path) {
  if (!existsSync(path)) return false;
  const head = Buffer.alloc(4096);
  const file = openSync(path, "r");
  readSync(file, head);
  closeSync(file);
  return !head.includes("/ld-linux") && !head.includes("/ld-musl");
}

function readJson(path) {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : undefined;
}

function say(text) {
  console.error(`nodelet: ${text}`);
}

/** Runs the steps in order; a SetupError ends the process with its message. */
export function setupOrExit(...steps) {
  try {
    for (const step of steps) step();
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    console.error(`nodelet: ${error.message}`);
    process.exit(1);
  }
}

/** All that `nodelet up` needs. */
export function setupToRun() {
  setupOrExit(installNpmPackages, () => installPrograms("run"), buildIfStale);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setupToRun();
