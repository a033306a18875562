import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { ApiClient, accessOf, at } from "../../test/contract/api/client.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
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

test("what was answered is there after kill -9 in the midst of writing, with versions that only grow", async () => {
  const dir = await mkdtemp(join(tmpdir(), "api-kill-"));
  const answered = new Map<string, number>();
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
      // They go on until the server is gone.
      const ends = await Promise.allSettled([0, 1, 2, 3, 4].map(write));
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
    await kill9(child);
  } finally {
    await rm(dir, { recursive: true });
  }
});
