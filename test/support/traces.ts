import { readdir, readFile } from "node:fs/promises";
import { systemClock } from "../../src/base/index.ts";
import { run } from "../../src/cli/machine/index.ts";

/** What a machine could leave behind, as sorted lines; equal before and after means without a trace. */
export async function takeTraces(): Promise<readonly string[]> {
  const [mounts, links, rules, chains, cgroups, results, shims, sockets, states] = await Promise.all([
    lines("mount", readFile("/proc/self/mountinfo", "utf8"), (line) => line.split(" ").slice(4).join(" ")),
    named("link", "/sys/class/net"),
    lines("rule", run("iptables-save", ["-t", "nat"]), (line) => (line.startsWith("-A ") ? line : "")),
    lines("chain", run("iptables-save", ["-t", "nat"]), (line) =>
      line.startsWith(":") ? (line.split(" ")[0] ?? "") : "",
    ),
    lines("cgroup", run("find", ["/sys/fs/cgroup", "-mindepth", "1", "-type", "d"]), (line) => line),
    named("cni result", "/var/lib/cni/results"),
    lines("process", run("ps", ["-eo", "stat=,pid=,comm="]), runtimeProcess),
    named("shim socket", "/run/containerd/s"),
    named("state", "/var/lib/nodelet-test"),
  ]);
  return [mounts, links, rules, chains, cgroups, results, shims, sockets, states].flat().sort();
}

function runtimeProcess(line: string): string {
  const [stat = "", pid = "", name = ""] = line.trim().split(/\s+/);
  return !stat.startsWith("Z") && /^(containerd|runc|busybox|docker-registry)/.test(name) ? `${pid} ${name}` : "";
}

async function named(kind: string, directory: string): Promise<readonly string[]> {
  return (await readdir(directory).catch(() => [])).map((name) => `${kind} ${name}`);
}

async function lines(kind: string, text: Promise<string>, pick: (line: string) => string): Promise<readonly string[]> {
  return (await text)
    .split("\n")
    .map(pick)
    .filter((line) => line !== "")
    .map((line) => `${kind} ${line}`);
}

/**
 * What has appeared since `before`, after giving it time to vanish: other machines may come and go meanwhile, and the
 * kernel takes a moment to drop a dead network namespace.
 */
export async function leftSince(before: readonly string[], patienceMs = 30_000): Promise<readonly string[]> {
  const known = new Set(before);
  const giveUp = AbortSignal.timeout(patienceMs);
  for (;;) {
    const left = (await takeTraces()).filter((line) => !known.has(line));
    if (left.length === 0 || giveUp.aborted) return left;
    await systemClock.sleep(100, new AbortController().signal);
  }
}
