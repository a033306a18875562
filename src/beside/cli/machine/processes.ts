import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { userInfo } from "node:os";
import { basename } from "node:path";
import { kill } from "node:process";
import { type Clock, hasCode, isMissing, never } from "../../../ground/base/index.ts";
import type { MachineLayout } from "./layout.ts";

/** A process that cannot be mistaken for a later one with the same number: the start time goes with it. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks after boot, field 22 of /proc/PID/stat. */
  readonly startTicks: string;
}

export type MachineRole = "agent" | "dockerd" | "containerd" | "shim" | "api" | "api-keeper";

export interface MachineProcess extends ProcessIdentity {
  readonly role: MachineRole;
}

/** What a command line is to the machine, if anything. Each role names a path below the state directory in full. */
export function roleOf(argv: readonly string[], layout: MachineLayout): MachineRole | undefined {
  const program = basename(argv[0] ?? "");
  if (program === "dockerd" && follows(argv, "--config-file", layout.dockerConfig)) return "dockerd";
  if (program === "containerd" && follows(argv, "--config", layout.containerdConfig)) return "containerd";
  if (program.startsWith("containerd-shim") && follows(argv, "-address", layout.containerdSocket)) return "shim";
  if (argv.includes(`--root-dir=${layout.agentRoot}`) && (program === "node" || program === "nodelet")) return "agent";
  if (argv.includes(`--dir=${layout.apiDir}`)) {
    if (program === "node") return "api";
    if (program === "sh" && basename(argv[1] ?? "") === "keep-running") return "api-keeper";
  }
  return undefined;
}

/** Every process of the machine, whoever started it; reads /proc, so nothing has to be remembered across crashes. */
export async function machineProcesses(layout: MachineLayout): Promise<readonly MachineProcess[]> {
  const found: MachineProcess[] = [];
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const role = roleOf(await readArgv(name), layout);
    if (role === undefined || !(await isWhatItSays(name, role))) continue;
    const identity = await identify(Number(name));
    if (identity !== undefined) found.push({ ...identity, role });
  }
  return found;
}

const programs: Readonly<Record<MachineRole, RegExp>> = {
  agent: /^node(js)?$/,
  api: /^node(js)?$/,
  "api-keeper": /^(sh|dash|bash|ash|busybox)$/,
  dockerd: /^dockerd$/,
  containerd: /^containerd$/,
  shim: /^containerd-shim/,
};

/**
 * Anyone can call a process as they like, also in a pod. Ours runs as we do, the program of its role, and sees the file
 * system that we see.
 */
async function isWhatItSays(pid: string, role: MachineRole): Promise<boolean> {
  try {
    const [own, root, ownRoot] = await Promise.all([stat(`/proc/${pid}`), stat(`/proc/${pid}/root/`), stat("/")]);
    const program = basename((await readlink(`/proc/${pid}/exe`)).replace(/ \(deleted\)$/, ""));
    const isHere = root.dev === ownRoot.dev && root.ino === ownRoot.ino;
    return own.uid === userInfo().uid && isHere && programs[role].test(program);
  } catch (error) {
    if (isMissing(error) || isGone(error) || isNotOurs(error)) return false;
    throw error;
  }
}

export async function processOf(layout: MachineLayout, role: MachineRole): Promise<MachineProcess | undefined> {
  return (await machineProcesses(layout)).find((process) => process.role === role);
}

/** The identity of a living process; undefined when it has ended, a zombie included. */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await readProc(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields[0], fields[19]];
  if (startTicks === undefined || state === "Z" || state === "X") return undefined;
  return { pid, startTicks };
}

export async function isRunning(process: ProcessIdentity): Promise<boolean> {
  return (await identify(process.pid))?.startTicks === process.startTicks;
}

/** Signals the process if it is still the one meant. */
export async function signalProcess(process: ProcessIdentity, signal: "SIGTERM" | "SIGKILL"): Promise<void> {
  if (await isRunning(process)) signalPid(process.pid, signal);
}

/** Signals a number just read from a cgroup; it may have ended since. */
export function signalPid(pid: number, signal: "SIGTERM" | "SIGKILL"): void {
  try {
    kill(pid, signal);
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error;
  }
}

/** Asks the process to end, and makes it end when it has not after `graceMs`. */
export async function stopProcess(process: ProcessIdentity, graceMs: number, clock: Clock): Promise<void> {
  await signalProcess(process, "SIGTERM");
  if (await endsWithin(process, graceMs, clock)) return;
  await signalProcess(process, "SIGKILL");
  if (!(await endsWithin(process, 10_000, clock))) {
    throw new Error(
      `process ${process.pid} does not end after SIGKILL; it waits in the kernel, see /proc/${process.pid}/stack`,
    );
  }
}

export async function endsWithin(process: ProcessIdentity, ms: number, clock: Clock): Promise<boolean> {
  const deadline = clock.monotonic() + ms;
  while (await isRunning(process)) {
    if (clock.monotonic() >= deadline) return false;
    await clock.sleep(20, never);
  }
  return true;
}

function follows(argv: readonly string[], flag: string, value: string): boolean {
  const at = argv.indexOf(flag);
  return at >= 0 && argv[at + 1] === value;
}

async function readArgv(pid: string): Promise<readonly string[]> {
  return (await readProc(`/proc/${pid}/cmdline`)).split("\0");
}

async function readProc(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error) || isGone(error)) return "";
    throw error;
  }
}

function isNotOurs(error: unknown): boolean {
  return hasCode(error, "EACCES", "EPERM");
}

function isGone(error: unknown): boolean {
  return hasCode(error, "ESRCH");
}
