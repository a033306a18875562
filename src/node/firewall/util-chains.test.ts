import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { ToolError } from "../../connections/host/index.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { UtilChains } from "./util-chains.ts";

/** iptables as far as it is used: chains and rules by table, and the exit codes of the real one. */
class FakeTables implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly said: string[] = [];
  readonly scope = new TaskScope();
  /** By family and table: each chain with its rules. */
  readonly chains = new Map<string, Map<string, string[]>>();
  readonly missing: ReadonlySet<string>;
  /** Another program holds the lock. */
  isLocked = false;
  /** Just when it is looked for a rule. */
  areChecksLocked = false;
  commands = 0;

  constructor(...missing: readonly string[]) {
    this.missing = new Set(missing);
    const chains = new UtilChains({
      clock: this.clock,
      log: { ...silentLogger, info: (message) => this.said.push(message), warn: (message) => this.said.push(message) },
      run: async (family, args) => {
        await Promise.resolve();
        return this.#run(family, args);
      },
    });
    this.scope.spawn("chains", (signal) => chains.run(signal));
  }

  flush(): void {
    this.chains.clear();
  }

  /** As `iptables-save` has it, without what every machine has. */
  saved(): readonly string[] {
    return [...this.chains]
      .flatMap(([table, chains]) => [...chains].map(([chain, rules]) => `${table} ${chain}: ${rules.join(" | ")}`))
      .filter((line) => !/(INPUT|OUTPUT|POSTROUTING): $/.test(line))
      .sort();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
  }

  #run(family: string, args: readonly string[]): string {
    this.commands++;
    const fail = (code: number | undefined): never => {
      throw new ToolError(family, args, code, "", undefined);
    };
    if (this.missing.has(family)) fail(undefined);
    if (this.isLocked || (this.areChecksLocked && args.includes("-C"))) fail(4);
    const [wait, seconds, t, table = "", operation = "", chain = "", ...rule] = args;
    assert.deepEqual([wait, seconds, t], ["-w", "5", "-t"]);
    const key = `${family} ${table}`;
    const chains = this.chains.get(key) ?? new Map(["INPUT", "OUTPUT", "POSTROUTING"].map((name) => [name, []]));
    this.chains.set(key, chains);
    const rules = chains.get(chain);
    const text = rule.join(" ");
    if (operation === "-N") {
      if (rules !== undefined) fail(1);
      chains.set(chain, []);
    } else if (rules === undefined) fail(operation === "-C" ? 2 : 1);
    else if (operation === "-C" && !rules.includes(text)) fail(1);
    else if (operation === "-I") rules.unshift(text);
    else if (operation === "-A") rules.push(text);
    return "";
  }
}

const drop =
  "-m comment --comment block incoming localnet connections --dst 127.0.0.0/8 ! --src 127.0.0.0/8 " +
  "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP";
const expected = [
  "ip6tables filter KUBE-KUBELET-CANARY: ",
  "ip6tables mangle KUBE-IPTABLES-HINT: ",
  "ip6tables mangle KUBE-KUBELET-CANARY: ",
  "ip6tables nat KUBE-KUBELET-CANARY: ",
  `iptables filter INPUT: -j KUBE-FIREWALL`,
  `iptables filter KUBE-FIREWALL: ${drop}`,
  "iptables filter KUBE-KUBELET-CANARY: ",
  `iptables filter OUTPUT: -j KUBE-FIREWALL`,
  "iptables mangle KUBE-IPTABLES-HINT: ",
  "iptables mangle KUBE-KUBELET-CANARY: ",
  "iptables nat KUBE-KUBELET-CANARY: ",
];

test("the chains and rules of both families", async () => {
  await using tables = new FakeTables();
  await tables.clock.advance(0);
  assert.deepEqual(tables.saved(), expected);
  const before = tables.commands;
  await tables.clock.advance(60_000);
  assert.equal(tables.commands - before, 2, "one look a minute and family");
});

test("what others removed is made again within a minute, and once", async () => {
  await using tables = new FakeTables();
  await tables.clock.advance(0);
  tables.flush();
  await tables.clock.advance(61_000);
  assert.deepEqual(tables.saved(), expected);
  await tables.clock.advance(600_000);
  assert.deepEqual(tables.saved(), expected, "no rule stands twice");
});

test("a lock that others hold is waited for, and says nothing about the canary", async () => {
  await using tables = new FakeTables();
  await tables.clock.advance(0);
  tables.isLocked = true;
  await tables.clock.advance(600_000);
  assert.deepEqual(tables.said, []);
  tables.isLocked = false;
  tables.flush();
  await tables.clock.advance(61_000);
  assert.deepEqual(tables.saved(), expected);
});

test("a lock that others hold when the agent starts: the chains are made when it is free", async () => {
  await using tables = new FakeTables();
  tables.isLocked = true;
  await tables.clock.advance(120_000);
  assert.deepEqual(tables.saved(), []);
  tables.isLocked = false;
  await tables.clock.advance(61_000);
  assert.deepEqual(tables.saved(), expected);
});

test("whether a rule is there can't be seen: it is not made a second time", async () => {
  await using tables = new FakeTables();
  await tables.clock.advance(0);
  // Somebody removed the canaries alone.
  for (const [, chains] of tables.chains) chains.delete("KUBE-KUBELET-CANARY");
  tables.areChecksLocked = true;
  await tables.clock.advance(61_000);
  tables.areChecksLocked = false;
  await tables.clock.advance(120_000);
  assert.deepEqual(tables.saved(), expected);
});

test("one family is enough, and none is said once", async () => {
  await using tables = new FakeTables("ip6tables");
  await tables.clock.advance(0);
  assert.deepEqual(
    tables.saved(),
    expected.filter((line) => line.startsWith("iptables")),
  );
  await using none = new FakeTables("iptables", "ip6tables");
  await none.clock.advance(600_000);
  assert.deepEqual(none.said, ["No iptables support on this system; not creating the KUBE-IPTABLES-HINT chain"]);
});
