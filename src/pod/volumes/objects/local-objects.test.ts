import assert from "node:assert/strict";
import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../../../test/support/until.ts";

import { type Logger, silentLogger, systemClock, TaskScope } from "../../../ground/base/index.ts";
import { LocalObjects } from "./local-objects.ts";
import type { VolumeObjectRef } from "./ports.ts";

const never = new AbortController().signal;
const map = (name: string, namespace = "default"): VolumeObjectRef<"configmap"> => ({
  kind: "configmap",
  namespace,
  name,
});
const secret = (name: string): VolumeObjectRef<"secret"> => ({ kind: "secret", namespace: "default", name });

async function start() {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-objects-"));
  const warnings: unknown[] = [];
  const log: Logger = { ...silentLogger, warn: (_message, fields) => warnings.push(fields) };
  const objects = new LocalObjects({ directory, clock: systemClock, log, checkEveryMs: 60_000 });
  const scope = new TaskScope();
  return {
    directory,
    objects,
    warnings,
    begin: () => scope.spawn("objects", (signal) => objects.run(signal)),
    put: async (file: string, text: string) => {
      await writeFile(join(directory, `.${file}`), text);
      await rename(join(directory, `.${file}`), join(directory, file));
    },
    async [Symbol.asyncDispose]() {
      await scope.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

test("config maps and secrets are found among pods and other files; texts of a secret become its data", async () => {
  await using local = await start();
  await local.put(
    "pod.yaml",
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: []}\n# kind: ConfigMap",
  );
  await local.put("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: one}\n");
  await local.put(
    "other.json",
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m","namespace":"shop"},"data":{"a":"two"}}',
  );
  await local.put(
    "secret.yaml",
    "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: plain}\ndata: {raw: eA==}\n",
  );
  await local.put("notes.txt", "not a manifest");
  local.begin();
  assert.deepEqual((await local.objects.get(map("m"), "latest", never))?.data, { a: "one" });
  assert.deepEqual((await local.objects.get(map("m", "shop"), "latest", never))?.data, { a: "two" });
  assert.deepEqual((await local.objects.get(secret("s"), "latest", never))?.data, { k: "cGxhaW4=", raw: "eA==" });
  assert.equal(await local.objects.get(map("p"), "latest", never), undefined);
  assert.deepEqual(local.warnings, []);
});

test("a watch tells the present object, then every change, until it ends", async () => {
  await using local = await start();
  const seen: (string | undefined)[] = [];
  const watch = local.objects.watch(map("m"), (object) => seen.push(object?.data?.["a"]));
  local.begin();
  await until("the first answer is there", () => seen.length === 1);
  await local.put("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '1'}\n");
  await until("it appears", () => seen.at(-1) === "1");
  await local.put("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '2'}\n");
  await until("it changes", () => seen.at(-1) === "2");
  await rm(join(local.directory, "m.yaml"));
  await until("it goes", () => seen.at(-1) === undefined);
  assert.deepEqual(seen, [undefined, "1", "2", undefined]);
  watch[Symbol.dispose]();
  assert.equal(local.objects.watches, 0);
  await local.put("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: '3'}\n");
  await until("others see it", async () => (await local.objects.get(map("m"), "latest", never))?.data?.["a"] === "3");
  assert.equal(seen.length, 4);
});

test("a bad edit keeps the last good version and is told of", async () => {
  await using local = await start();
  await local.put("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: good}\n");
  local.begin();
  await local.objects.get(map("m"), "latest", never);
  await local.put("m.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: [1, 2]\n");
  await until("it is told of", () => local.warnings.length > 0);
  assert.deepEqual((await local.objects.get(map("m"), "latest", never))?.data, { a: "good" });
});

test("two files for one object: the first by name counts", async () => {
  await using local = await start();
  await local.put("b.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: second}\n");
  await local.put("a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: first}\n");
  local.begin();
  assert.deepEqual((await local.objects.get(map("m"), "latest", never))?.data, { a: "first" });
  assert.equal(local.warnings.length, 1);
});
