import assert from "node:assert/strict";
import { setMaxListeners } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openDescriptors } from "../../../../test/fuzz/leaks.ts";
import { NameServer } from "../../../../test/support/name-server.ts";
import { HostNames } from "./lookup.ts";

const never = new AbortController().signal;

describe("names of hosts", () => {
  let directory: string;
  let server: NameServer;

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "nodelet-names-"));
    server = await NameServer.start({ "web.cluster.test": "10.1.2.3", "a.b.test": "10.9.9.9" }, (name) =>
      name.includes("dead"),
    );
  });
  after(async () => {
    rmSync(directory, { recursive: true });
    await server?.[Symbol.asyncDispose]();
  });

  const paths = () => ({ hosts: join(directory, "hosts"), resolvConf: join(directory, "resolv.conf") });
  function names(hosts = "", resolvConf = ""): HostNames {
    writeFileSync(paths().hosts, hosts);
    writeFileSync(paths().resolvConf, resolvConf);
    return new HostNames(paths(), [server.address]);
  }
  const addresses = async (known: HostNames, name: string, family: 0 | 4 | 6 = 0): Promise<readonly string[]> =>
    (await known.resolve(name, family, never)).map(({ address }) => address);

  test("the hosts file is asked first, in any case of letters, and read again when it changes", async () => {
    const known = names("10.0.0.1 Db db.local # the old one\n::5 db\n");
    assert.deepEqual(await addresses(known, "DB"), ["10.0.0.1", "::5"]);
    assert.deepEqual(await addresses(known, "db.local."), ["10.0.0.1"]);
    assert.deepEqual(await addresses(known, "db", 6), ["::5"]);
    writeFileSync(paths().hosts, "10.0.0.22 db\n");
    assert.deepEqual(await addresses(known, "db"), ["10.0.0.22"]);
  });

  test("localhost is this machine, whatever the files say", async () => {
    assert.deepEqual(await addresses(names(), "localhost"), ["127.0.0.1", "::1"]);
  });

  test("name servers are asked through the search list", async () => {
    const known = names("", "search first.test cluster.test\noptions ndots:1\n");
    assert.deepEqual(await addresses(known, "web"), ["10.1.2.3"]);
    assert.deepEqual(await addresses(known, "a.b.test"), ["10.9.9.9"]);
    assert.deepEqual(await addresses(known, "web.cluster.test."), ["10.1.2.3"]);
    await assert.rejects(addresses(known, "web."), { code: "ENOTFOUND" });
  });

  test("a name that nobody knows, or that nobody can know", async () => {
    const known = names();
    await assert.rejects(addresses(known, "none.test"), { code: "ENOTFOUND" });
    await assert.rejects(addresses(known, "x".repeat(1_000_000)), { code: "ENOTFOUND" });
    await assert.rejects(addresses(known, "a..b"), { code: "ENOTFOUND" });
  });

  test("servers that do not answer hold up nobody else: no name, no file", async () => {
    const known = names();
    const before = openDescriptors();
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    // Not more than the test server can queue while this process is busy asking.
    const dead = Array.from({ length: 60 }, (_, index) => known.resolve(`dead${index}.test`, 0, stop.signal));
    const ended = Promise.allSettled(dead);
    assert.deepEqual(await addresses(known, "a.b.test"), ["10.9.9.9"]);
    assert.equal(await readFile(paths().hosts, "utf8"), "");
    stop.abort(new Error("the attempt's time is over"));
    for (const result of await ended) assert.equal(result.status, "rejected");
    assert.ok(openDescriptors() <= before + 2, `${openDescriptors()} descriptors, ${before} before`);
  });
});
