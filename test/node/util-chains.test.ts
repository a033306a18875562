// The iptables chains by the real iptables, in a network of their own.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { type RunTool, runTool } from "../../src/connections/host/index.ts";
import { silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import { UtilChains } from "../../src/node/firewall/index.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

const network = `nodelet-chains-${process.pid}`;
before(() => execFileSync("ip", ["netns", "add", network]));
after(() => execFileSync("ip", ["netns", "del", network]));

const inNetwork = (program: string, args: readonly string[]): readonly string[] => [
  "netns",
  "exec",
  network,
  program,
  ...args,
];
const run: RunTool = (program, args, signal) => runTool("ip", inNetwork(program, args), signal);
/** The tables of a family, without policies, counters and comments on when they were saved. */
const saved = (program: string): readonly string[] =>
  execFileSync("ip", [...inNetwork(program, [])], { encoding: "utf8" })
    .split("\n")
    .filter((line) => /^(:KUBE|-A|\*)/.test(line))
    .map((line) => line.replace(/ \[.*/, ""));

const ofV4 = [
  "*filter",
  ":KUBE-FIREWALL -",
  ":KUBE-KUBELET-CANARY -",
  "-A INPUT -j KUBE-FIREWALL",
  "-A OUTPUT -j KUBE-FIREWALL",
  '-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP',
  "*mangle",
  ":KUBE-IPTABLES-HINT -",
  ":KUBE-KUBELET-CANARY -",
  "*nat",
  ":KUBE-KUBELET-CANARY -",
];
const ofV6 = [
  "*filter",
  ":KUBE-KUBELET-CANARY -",
  "*mangle",
  ":KUBE-IPTABLES-HINT -",
  ":KUBE-KUBELET-CANARY -",
  "*nat",
  ":KUBE-KUBELET-CANARY -",
];
const tables = (lines: readonly string[]): string =>
  lines
    .join("\n")
    .split(/^(?=\*)/m)
    .map((each) => each.trim())
    .sort()
    .join("\n");

test("both families get their chains, and again after a flush", async () => {
  const clock = new FakeClock();
  await using scope = new TaskScope();
  scope.spawn("chains", (signal) => new UtilChains({ clock, log: silentLogger, run }).run(signal));
  const isDone = (): boolean =>
    tables(saved("iptables-save")) === tables(ofV4) && tables(saved("ip6tables-save")) === tables(ofV6);
  await until("all chains are there", isDone);
  for (const program of ["iptables", "ip6tables"]) {
    for (const table of ["filter", "mangle", "nat"]) {
      for (const how of ["-F", "-X"]) execFileSync("ip", [...inNetwork(program, ["-t", table, how])]);
    }
  }
  assert.equal(isDone(), false);
  await clock.advance(61_000);
  await until("all chains are there again", isDone);
  assert.equal(saved("iptables-save").filter((line) => line === "-A INPUT -j KUBE-FIREWALL").length, 1);
});
