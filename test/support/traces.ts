import { readdir, readFile } from "node:fs/promises";
import { run } from "../../src/beside/cli/machine/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { patienceMs } from "./until.ts";

/** What a machine could leave behind, one line each; equal before and after means without a trace. */
export async function takeTraces(): Promise<readonly string[]> {
  const saved = run("iptables-save", ["-t", "nat"]);
  const traces = await Promise.all([
    lines("mount", readFile("/proc/self/mountinfo", "utf8"), (line) => line.split(" ").slice(4).join(" ")),
    lines("rule", saved, (line) => (line.startsWith("-A ") ? line : "")),
    lines("chain", saved, (line) => (line.startsWith(":") ? (line.split(" ")[0] ?? "") : "")),
    lines("cgroup", run("find", ["/sys/fs/cgroup", "-mindepth", "1", "-type", "d"]), (line) => line),
    runtimeProcesses(),
    named("link", "/sys/class/net"),
    named("cni result", "/var/lib/cni/results"),
    named("shim socket", "/run/containerd/s"),
    named("log link", "/var/log/containers"),
    named("state", "/var/lib/nodelet-test"),
  ]);
  return traces.flat();
}

/**
 * What has appeared since `before`, after giving it time to vanish: other machines may come and go meanwhile, and the
 * kernel takes a moment to drop a dead network namespace.
 */
export async function leftSince(before: readonly string[], within = patienceMs): Promise<readonly string[]> {
  const known = new Set(before);
  const giveUp = AbortSignal.timeout(within);
  for (;;) {
    const left = (await takeTraces()).filter((line) => !known.has(line));
    if (left.length === 0 || giveUp.aborted) return left;
    await systemClock.sleep(100, new AbortController().signal);
  }
}

async function runtimeProcesses(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pid of await readdir("/proc")) {
    const stat = /^\d+$/.test(pid) ? await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "") : "";
    const [, name = "", state = "Z"] = /\((.*)\) (\S)/.exec(stat) ?? [];
    if (state !== "Z" && /^(containerd|runc|busybox|docker-regis)/.test(name)) found.push(`process ${pid} ${name}`);
  }
  return found;
}

async function named(kind: string, directory: string): Promise<readonly string[]> {
  return (await readdir(directory).catch(() => [])).map((name) => `${kind} ${name}`);
}

async function lines(kind: string, text: Promise<string>, pick: (line: string) => string): Promise<readonly string[]> {
  const picked = (await text).split("\n").map(pick);
  return picked.filter((line) => line !== "").map((line) => `${kind} ${line}`);
}
