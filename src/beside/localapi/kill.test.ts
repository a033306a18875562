import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ApiClient, accessOf, at } from "../../../test/contract/api/client.ts";

const main = fileURLToPath(new URL("../../main.ts", import.meta.url));
const started: ChildProcess[] = [];
after(() => {
  for (const child of started) child.kill("SIGKILL");
});
const configMaps = "/api/v1/namespaces/default/configmaps";

async function startServer(
  dir: string,
  port: number,
): Promise<{ readonly child: ChildProcess; readonly port: number }> {
  const args = ["--import", "tsx", main, "api-server", `--dir=${dir}`, `--listen=127.0.0.1:${port}`];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  started.push(child);
  let said = "";
  for await (const line of createInterface({ input: child.stderr })) {
    said += `${line}\n`;
    const url = /url="(.*?)"/.exec(line)?.[1];
    if (url !== undefined) return { child, port: Number(new URL(url).port) };
  }
  throw new Error(`the server ended:\n${said}`);
}

async function kill9(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

/** Watches until the server is gone; what it was told is in `told`, by version. */
async function watchUntilGone(client: ApiClient, version: number, told: Map<number, string>): Promise<void> {
  try {
    for await (const { type, object } of client.watch(`${configMaps}?watch=1&resourceVersion=${version}`)) {
      assert.notEqual(type, "ERROR", JSON.stringify(object));
      const revision = Number(at(object, "metadata", "resourceVersion"));
      assert.equal(told.get(revision), undefined, `version ${revision} was told twice`);
      told.set(revision, `${type} ${at(object, "metadata", "name")}`);
    }
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
  }
}

test("what was answered or told is there after kill -9 in the midst of writing, with versions that only grow", async () => {
  const dir = await mkdtemp(join(tmpdir(), "api-kill-"));
  const answered = new Map<string, number>();
  const told = new Map<number, string>();
  let port = 0;
  let newest = 0;
  try {
    for (const round of [0, 1]) {
      const server = await startServer(dir, port);
      port = server.port;
      using client = new ApiClient(accessOf(await readFile(join(dir, "admin.kubeconfig"), "utf8")));
      const write = async (writer: number): Promise<void> => {
        for (let n = 0; ; n++) {
          const name = `m-${round}-${writer}-${n}`;
          const { code, body } = await client.post(configMaps, { metadata: { name }, data: { a: "x".repeat(2000) } });
          assert.equal(code, 201);
          const version = Number(at(body, "metadata", "resourceVersion"));
          assert.ok(version > newest, `version ${version} after ${newest} of the life before`);
          answered.set(name, version);
          if (answered.size === (round + 1) * 150) await kill9(server.child);
        }
      };
      const listed = await client.get(`${configMaps}?limit=1`);
      const watches = watchUntilGone(client, Number(at(listed.body, "metadata", "resourceVersion")), told);
      // They go on until the server is gone.
      const ends = await Promise.allSettled([0, 1, 2, 3, 4].map(write));
      await watches;
      for (const end of ends)
        assert.ok(end.status === "rejected" && !(end.reason instanceof assert.AssertionError), String(end));
      newest = Math.max(...answered.values());
    }
    const { child } = await startServer(dir, port);
    using client = new ApiClient(accessOf(await readFile(join(dir, "admin.kubeconfig"), "utf8")));
    const { body } = await client.get(configMaps);
    const items = at(body, "items") as { metadata: { name: string; resourceVersion: string } }[];
    const kept = new Map(items.map(({ metadata }) => [metadata.name, Number(metadata.resourceVersion)]));
    for (const [name, version] of answered) assert.equal(kept.get(name), version, name);
    // Nothing that a watcher was told is lost, and no version of it is that of another change.
    assert.ok(told.size > 100, `a watcher was told of ${told.size} changes`);
    const byVersion = new Map([...kept].map(([name, version]) => [version, `ADDED ${name}`]));
    for (const [version, change] of told) assert.equal(byVersion.get(version), change);
    const last = Math.max(...told.keys());
    for await (const { type, object } of client.watch(`${configMaps}?watch=1&resourceVersion=${last + 1_000_000}`)) {
      assert.equal(`${type} ${at(object, "code")}`, "ERROR 410");
    }
    await kill9(child);
  } finally {
    await rm(dir, { recursive: true });
  }
});
