import assert from "node:assert/strict";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ApiClient, accessOf, at, textAt } from "../../../../test/contract/api/client.ts";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { silentLogger, systemClock, TaskScope } from "../../../ground/base/index.ts";
import type { ApiObject } from "../object.ts";
import { type LocalApi, startLocalApi } from "../start.ts";
import { type Level, LevelDisk } from "./level-disk.ts";
import { Store } from "./store.ts";

const thing = (name: string, value: string): ApiObject => ({
  apiVersion: "v1",
  kind: "Thing",
  metadata: { name },
  value,
});

describe("objects on disk", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "local-api-"));
  });
  afterEach(async () => await rm(directory, { recursive: true }));

  test("what was stored is there again, what was deleted is not, and revisions only grow", async () => {
    const first = await LevelDisk.open(directory);
    const store = new Store({ ...first, keptChanges: 10, onListenerError: assert.fail });
    store.put("things", thing("kept", "1"));
    store.put("things", thing("kept", "2"));
    store.put("things", thing("gone", "1"));
    store.delete("things", "gone");
    await store.flushed();
    const { revision } = store.published;
    await first.disk.close();

    const second = await LevelDisk.open(directory);
    const again = new Store({ ...second, keptChanges: 10, onListenerError: assert.fail });
    assert.ok(again.published.revision >= revision);
    assert.deepEqual(
      again.list("things").map(({ metadata, value }) => [metadata.name, value]),
      [["kept", "2"]],
    );
    assert.equal(again.published.changesAfter(revision - 1, "things"), undefined);
    assert.deepEqual(again.published.changesAfter(again.published.revision, "things"), []);
    await second.disk.close();
  });

  test("who knows what came after an older copy of the directory is not told that it goes on from there", async () => {
    const live = join(directory, "live");
    const copy = join(directory, "copy");
    const inALife = async (act: (store: Store) => void): Promise<Store> => {
      const opened = await LevelDisk.open(live);
      const store = new Store({ ...opened, keptChanges: 100, onListenerError: assert.fail });
      act(store);
      await store.flushed();
      await opened.disk.close();
      return store;
    };
    await inALife((store) => void store.put("things", thing("old", "1")));
    await cp(live, copy, { recursive: true });
    const lost = await inALife((store) => {
      store.delete("things", "old");
      store.put("things", thing("new", "1"));
    });
    const known = lost.published.revision;
    await rm(live, { recursive: true });
    await cp(copy, live, { recursive: true });
    const restored = await inALife((store) => {
      for (const value of ["1", "2", "3", "4", "5"]) store.put("things", thing("other", value));
    });
    // Or a client would never hear that "new" is gone and "old" is back.
    assert.equal(restored.published.changesAfter(known, "things"), undefined);
  });

  test("a disk that fails before anything was written to it goes on where it is", async () => {
    const level = new FickleLevel();
    level.kept.set("revision", "7");
    const disk = new LevelDisk(level, { found: 7, from: 1_000 });
    const state = { revision: 1_000, objects: [] };
    const store = new Store({ disk, state, keptChanges: 10, onListenerError: assert.fail });
    level.trouble = "fails";
    store.put("things", thing("a", "1"));
    await assert.rejects(store.flushed());
    level.trouble = "none";
    const [clock, scope] = [new FakeClock(), new TaskScope()];
    scope.spawn("mend", async (signal) => await disk.keepWritable(clock, signal));
    await clock.advance(5_000);
    assert.equal(store.put("things", thing("a", "2")).metadata.resourceVersion, "1001");
    await store.flushed();
    await scope.stop();
  });

  test("two servers can't share a directory", async () => {
    const { disk } = await LevelDisk.open(directory);
    await assert.rejects(LevelDisk.open(directory), /can't be opened.*Is another local API server using it\?/s);
    await disk.close();
  });

  test("a server that starts again is the same to its clients", async () => {
    const start = async (port: number): Promise<{ api: LocalApi; scope: TaskScope }> => {
      const scope = new TaskScope();
      const listen = { host: "127.0.0.1", port };
      return {
        api: await startLocalApi({ dir: directory, listen, clock: systemClock, log: silentLogger, scope }),
        scope,
      };
    };
    const before = await start(0);
    const access = accessOf(await before.api.adminKubeconfig());
    const account = "/api/v1/namespaces/default/serviceaccounts/default";
    let token = "";
    let version = "";
    {
      using client = new ApiClient(access);
      token = textAt((await client.post(`${account}/token`, { spec: {} })).body, "status", "token");
      const { body } = await client.post("/api/v1/namespaces/default/configmaps", {
        metadata: { name: "kept" },
        data: { a: "1" },
      });
      version = textAt(body, "metadata", "resourceVersion");
    }
    const bootstrap = before.api.bootstrapKubeconfig();
    await before.api.stop();

    const after = await start(Number(new URL(before.api.url).port));
    using client = new ApiClient(access);
    const { body } = await client.get("/api/v1/namespaces/default/configmaps/kept");
    assert.equal(at(body, "data", "a"), "1");
    assert.equal(at(body, "metadata", "resourceVersion"), version);
    const review = await client.post("/apis/authentication.k8s.io/v1/tokenreviews", { spec: { token } });
    assert.equal(at(review.body, "status", "authenticated"), true);
    assert.equal(after.api.caPem, before.api.caPem);
    assert.equal(after.api.bootstrapKubeconfig(), bootstrap);
    const events = client.watch(`/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=${Number(version) - 1}`);
    const { value } = await events.next();
    assert.equal(at(value?.object, "code"), 410);
    await events.return(undefined);
    await after.api.stop();
    await before.scope.stop();
    await after.scope.stop();
  });
});

/** A database in memory that does what disks do when asked to. */
class FickleLevel implements Level {
  readonly kept = new Map<string, string>();
  /** What the next writes come to: "torn" reaches the disk although it fails. */
  trouble: "none" | "fails" | "torn" | "hangs" = "none";
  #release = (): void => {};

  async open(): Promise<void> {
    if (this.trouble === "fails") throw new Error("ENOSPC");
  }
  async close(): Promise<void> {}
  async *iterator(): AsyncGenerator<[string, string]> {
    yield* this.kept;
  }
  async get(key: string): Promise<string | undefined> {
    return this.kept.get(key);
  }
  async batch(operations: Parameters<Level["batch"]>[0]): Promise<void> {
    if (this.trouble === "hangs") await new Promise<void>((resolve) => (this.#release = resolve));
    if (this.trouble === "fails") throw new Error("ENOSPC: no space left");
    for (const operation of operations) {
      if (operation.type === "put") this.kept.set(operation.key, operation.value);
      else this.kept.delete(operation.key);
    }
    if (this.trouble === "torn") throw new Error("EIO");
  }
  goOn(trouble: "none" | "fails"): void {
    this.trouble = trouble;
    this.#release();
  }
}

describe("a disk in trouble", () => {
  const clock = new FakeClock();
  let level: FickleLevel;
  let disk: LevelDisk;
  let store: Store;
  let seen: string[];
  let told: unknown[];
  const names = (objects: readonly ApiObject[]): unknown => objects.map(({ metadata }) => metadata.name);
  beforeEach(() => {
    level = new FickleLevel();
    disk = new LevelDisk(level);
    told = [];
    store = new Store({
      disk,
      keptChanges: 100,
      onListenerError: assert.fail,
      onDisk: (error) => told.push(error === undefined ? "mended" : "broken"),
    });
    seen = [];
    store.published.watch("things", ({ type, revision, object }) =>
      seen.push(`${type} ${object.metadata.name} ${revision}`),
    );
  });

  test("clients see nothing before the disk has it, decisions see it at once", async () => {
    level.trouble = "hangs";
    store.put("things", thing("a", "1"));
    const flushed = store.flushed();
    await settle();
    assert.deepEqual(names(store.list("things")), ["a"]);
    assert.deepEqual(names(store.published.list("things")), []);
    assert.equal(store.published.revision, 1);
    assert.deepEqual(seen, []);
    store.put("things", thing("b", "1"));
    level.goOn("none");
    await flushed;
    await store.flushed();
    assert.deepEqual(seen, ["ADDED a 2", "ADDED b 3"]);
    assert.equal(store.published.revision, 3);
  });

  test("what did not reach the disk never was, and its revisions are given to what does", async () => {
    store.put("things", thing("kept", "1"));
    await store.flushed();
    level.trouble = "hangs";
    store.put("things", thing("lost", "1"));
    const lost = store.flushed();
    await settle();
    store.put("things", thing("kept", "2"));
    const alsoLost = store.flushed();
    level.goOn("fails");
    await assert.rejects(lost, /nothing can be stored at present: ENOSPC/);
    await assert.rejects(alsoLost, /nothing can be stored at present/);
    assert.deepEqual(
      store.list("things").map(({ metadata, value }) => [metadata.name, value]),
      [["kept", "1"]],
    );
    assert.throws(() => store.put("things", thing("refused", "1")), /nothing can be stored at present/);
    assert.throws(() => store.delete("things", "kept"), /nothing can be stored at present/);
    assert.deepEqual(seen, ["ADDED kept 2"]);

    const scope = new TaskScope();
    scope.spawn("mend", async (signal) => await disk.keepWritable(clock, signal));
    await clock.advance(5_000);
    assert.deepEqual(told, ["broken"]);
    level.trouble = "none";
    await clock.advance(5_000);
    assert.deepEqual(told, ["broken", "mended"]);
    store.put("things", thing("later", "1"));
    await store.flushed();
    assert.deepEqual(seen, ["ADDED kept 2", "ADDED later 3"]);
    assert.equal(level.kept.get("revision"), "3");
    assert.deepEqual([...level.kept.keys()].toSorted(), ["object things kept", "object things later", "revision"]);
    await scope.stop();
  });

  test("a write that failed and reached the disk all the same can only be told by starting again", async () => {
    level.trouble = "torn";
    store.put("things", thing("a", "1"));
    await assert.rejects(store.flushed());
    assert.deepEqual(seen, []);
    level.trouble = "none";
    const scope = new TaskScope();
    scope.spawn("mend", async (signal) => await disk.keepWritable(clock, signal));
    await clock.advance(5_000);
    assert.ok(scope.signal.aborted);
    assert.match(String(scope.signal.reason.cause), /the server must start again/);
    assert.throws(() => store.put("things", thing("b", "1")));
    await scope.stop();
  });
});
