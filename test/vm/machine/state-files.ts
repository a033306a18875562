import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { VirtualMachine } from "./machine.ts";
import { runProgram } from "./program.ts";

const copy = "/run/vm-state-files.tar";
const roots = ["var/lib/kubelet", "var/lib/nodelet-api"];
/** The local API's database judges itself; what pods write is theirs. */
const leftOut = ["*.tmp", "*.new", "*.sock", "*/pods/*/volumes", "*/pods/*/containers", "*/pods/*/plugins"];

export interface StateFilesReport {
  readonly count: number;
  /** Of all that were read, below the directory. */
  readonly paths: readonly string[];
  readonly problems: readonly string[];
}

/** Has every later boot copy what agent and API server keep before either of them can mend it. */
export async function copyStateFilesAtBoot(machine: VirtualMachine): Promise<void> {
  const excludes = [...leftOut, "*/nodelet-api/store", "*/nodelet-api/objects"].map((name) => `--exclude=${name}`);
  const unit = [
    "[Unit]",
    "Before=nodelet.service nodelet-api.service",
    "[Service]",
    "Type=oneshot",
    // The name appears when all is in it.
    `ExecStart=tar --create --file=${copy}.new --directory=/ ${excludes.join(" ")} ${roots.join(" ")}`,
    `ExecStart=mv ${copy}.new ${copy}`,
    "[Install]",
    "WantedBy=multi-user.target",
    "",
  ];
  await machine.putFile("/etc/systemd/system/vm-state-files.service", unit.join("\n"));
  await machine.run("systemctl daemon-reload && systemctl --quiet enable vm-state-files && sync");
}

/** Reads the copies on the host, which takes an emulated machine seconds. */
export async function stateFilesReport(machine: VirtualMachine): Promise<StateFilesReport> {
  await machine.until("the state files have been copied", `test -e ${copy} || systemctl is-failed vm-state-files`);
  const archive = Buffer.from(await machine.run(`base64 --wrap=0 ${copy}`), "base64");
  const directory = await mkdtemp(join(tmpdir(), "nodelet-vm-state-"));
  try {
    await runProgram("tar", ["--extract", "--directory", directory], { input: archive });
    return await judgeStateFiles(directory);
  } finally {
    await rm(directory, { recursive: true });
  }
}

/** Reads all state files below a directory, where they have the paths they have in the machine. */
export async function judgeStateFiles(directory: string): Promise<StateFilesReport> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const problems: string[] = [];
  const read: string[] = [];
  for (const path of paths) {
    const isPem = /\.(crt|key|pem)$/.test(path);
    // What is said of a pod that runs, and of its probes, is not waited for; unreadable, it counts as absent.
    const isOfPod = /\/pods\/[^/]+\/nodelet(-probes)?\.json$/.test(path);
    const isJson = /\.(json|kubeconfig)$|image_manager|checkpoint|config\.yaml$|_state$/.test(path) && !isOfPod;
    const isTheirs = /\/pods\/[^/]+\/(volumes|containers|plugins)\//.test(path);
    if ((!isPem && !isJson) || isTheirs) continue;
    read.push(relative(directory, path));
    const text = await readFile(path, "utf8");
    const wrong = isPem ? pemFault(text) : jsonFault(text);
    if (wrong !== undefined) problems.push(`${relative(directory, path)} (${text.length} bytes): ${wrong}`);
  }
  return { count: read.length, paths: read.sort(), problems };
}

function pemFault(text: string): string | undefined {
  return /-----END [A-Z ]+-----\s*$/.test(text) ? undefined : `no PEM: ${text.slice(0, 80)}`;
}

function jsonFault(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return String(error);
  }
}
