import assert from "node:assert/strict";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { parseResolvConf, readResolvConf, resolvConfProblem } from "./resolv-conf.ts";

for (const [name, text, nameservers, searches, options] of [
  ["empty", "", [], [], []],
  ["only comments", "# nameserver 1.2.3.4\n  # search x\n", [], [], []],
  ["name servers add up", "nameserver 1.2.3.4\nnameserver  5.6.7.8 \n", ["1.2.3.4", "5.6.7.8"], [], []],
  ["more words after an address", "nameserver 1.2.3.4 trailing", ["1.2.3.4"], [], []],
  ["IPv6 with a zone", "nameserver fe80::1%eth0", ["fe80::1%eth0"], [], []],
  ["the last search line wins", "search a b\nsearch c d", [], ["c", "d"], []],
  ["an empty search line wins too", "search a b\nsearch", [], [], []],
  ["one trailing dot goes", "search a. b.. c", [], ["a", "b.", "c"], []],
  ["a lone dot goes", "search . a", [], ["a"], []],
  ["options add up", "options ndots:5\noptions rotate timeout:1", [], [], ["ndots:5", "rotate", "timeout:1"]],
  ["later option values win", "options ndots:5 rotate\noptions ndots:2", [], [], ["ndots:2", "rotate"]],
  ["other keywords are ignored", "domain example.com\nsortlist 1.2.3.0\n; remark", [], [], []],
  ["tabs and Windows line ends", "nameserver\t1.2.3.4\r\nsearch\ta\tb\r\n", ["1.2.3.4"], ["a", "b"], []],
] as const) {
  test(`resolv.conf: ${name}`, () => assert.deepEqual(parseResolvConf(text), { nameservers, searches, options }));
}

test("a name server line without an address is an error", () => {
  assert.throws(() => parseResolvConf("nameserver \n"), { name: "ConfigError", message: /nameserver list is empty/ });
});

test("an empty path means no settings; a missing or huge file is an error", async () => {
  const directory = await mkdtemp(join(tmpdir(), "resolv-"));
  try {
    assert.equal(await readResolvConf(""), undefined);
    const path = join(directory, "resolv.conf");
    await assert.rejects(readResolvConf(path), { code: "ENOENT" });
    await writeFile(path, "nameserver 1.1.1.1\n");
    assert.deepEqual((await readResolvConf(path))?.nameservers, ["1.1.1.1"]);
    await truncate(path, 10 * 1024 * 1024 + 1);
    await assert.rejects(readResolvConf(path), { name: "ConfigError" });
  } finally {
    await rm(directory, { recursive: true });
  }
});

const conf = (searches: readonly string[]): Parameters<typeof resolvConfProblem>[1] => ({
  nameservers: [],
  searches,
  options: [],
});
const domains = (count: number): string[] => Array.from({ length: count }, (_, index) => `d${index}`);

test("the node's file may use what the cluster's three domains leave", () => {
  assert.equal(resolvConfProblem("/r", conf(domains(29)), "cluster.local"), undefined);
  assert.equal(
    resolvConfProblem("/r", conf(domains(30)), "cluster.local"),
    "Resolv.conf file '/r' contains search line consisting of more than 29 domains!",
  );
  assert.equal(resolvConfProblem("/r", conf(domains(32)), ""), undefined);
  assert.equal(
    resolvConfProblem("/r", conf(["x".repeat(254)]), ""),
    'Resolv.conf file "/r" contains a search path which length is more than allowed 253 chars!',
  );
  assert.equal(
    resolvConfProblem("/r", conf(Array.from({ length: 9 }, (_, index) => `${"x".repeat(249)}${index}`)), ""),
    "Resolv.conf file '/r' contains search line which length is more than allowed 2048 chars!",
  );
});
