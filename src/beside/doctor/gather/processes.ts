import { basename } from "node:path";
import { mapAtMost } from "../../../ground/base/index.ts";
import type { HostFiles } from "./files.ts";

/** A process of this machine that may matter to a node. */
export interface ProcessFact {
  readonly pid: number;
  /** `kubelet`, `nodelet`, `k3s`, `cadvisor`, `kube-proxy`… */
  readonly program: string;
  /** The words after the program. */
  readonly args: readonly string[];
  /** It has a network of its own: a pod's, or a machine's within this one. What runs this machine never has. */
  readonly isElsewhere?: true;
}

const wanted = new Set([
  ...[
    "kubelet",
    "nodelet",
    "k3s",
    "rke2",
    "k0s",
    "microk8s",
    "cadvisor",
    "kube-proxy",
    "dockerd",
    "containerd",
    "crio",
  ],
  "containerd-shim",
  ...["firewalld", "chronyd", "ntpd", "systemd-timesyncd", "systemd-timesyn"],
]);
const mostProcesses = 20_000;
const longestCommandLine = 32 * 1024;

/** Reads /proc once. Processes that are gone meanwhile, or hide, are left out. */
export async function findProcesses(files: HostFiles): Promise<readonly ProcessFact[]> {
  const pids = (await files.names("/proc", mostProcesses)).filter((name) => /^\d+$/.test(name)).map(Number);
  const ownNetwork = await files.link("/proc/self/ns/net");
  const found = await mapAtMost(16, pids, async (pid) => {
    const name = (await files.text(`/proc/${pid}/comm`, 64).catch(() => "")).trim();
    // The kernel cuts names; node is named after its main thread.
    if (!wanted.has(name) && !/^(?:node|MainThread|hyperkube|k3s)/.test(name)) return undefined;
    const words = (await files.text(`/proc/${pid}/cmdline`, longestCommandLine).catch(() => "")).split("\0");
    if (words.at(-1) === "") words.pop();
    const process = processOf(pid, name, words);
    if (process === undefined || ownNetwork === undefined) return process;
    // Another user than root can't see it: then it counts as this machine's.
    const network = await files.link(`/proc/${pid}/ns/net`);
    return network === undefined || network === ownNetwork ? process : { ...process, isElsewhere: true as const };
  });
  return found.filter((process) => process !== undefined).sort((a, b) => a.pid - b.pid);
}

function processOf(pid: number, name: string, [first = "", ...words]: readonly string[]): ProcessFact | undefined {
  const script = words.findIndex((word) => word.endsWith("/dist/nodelet.mjs"));
  if (script >= 0) return { pid, program: "nodelet", args: words.slice(script + 1) };
  if (/^(?:node|MainThread)/.test(name)) return undefined;
  // `k3s server` calls itself after its subcommand: "/usr/local/bin/k3s server".
  const program = basename(first.split(" ")[0] ?? "") || name;
  if (program === "hyperkube") return { pid, program: words[0] ?? program, args: words.slice(1) };
  return { pid, program: wanted.has(program) ? program : name, args: words };
}

/** An agent of this machine, not one of its commands: its words are flags. Any pod can call a process `kubelet`. */
export function isAgent(process: ProcessFact): boolean {
  return process.isElsewhere !== true && isCalledAgent(process);
}

/** One of a machine within this one, or a process that says so. */
export function isAgentElsewhere(process: ProcessFact): boolean {
  return process.isElsewhere === true && isCalledAgent(process);
}

function isCalledAgent({ program, args }: ProcessFact): boolean {
  const [first] = args;
  if (program === "kubelet") return true;
  return program === "nodelet" && (first === undefined || first.startsWith("-"));
}

export function rootDirOf(args: readonly string[]): string {
  return flagOf(args, "root-dir") ?? "/var/lib/kubelet";
}

/** The value of a flag in either form; undefined where it is not given. */
export function flagOf(args: readonly string[], name: string): string | undefined {
  for (const [index, word] of args.entries()) {
    if (word === `--${name}`) return args[index + 1];
    if (word.startsWith(`--${name}=`)) return word.slice(name.length + 3);
  }
  return undefined;
}
