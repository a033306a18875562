import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ApiClient, accessOf, at, textAt } from "../../../test/contract/api/client.ts";
import { silentLogger, systemClock, TaskScope } from "../../base/index.ts";
import type { ApiObject } from "../object.ts";
import { type LocalApi, startLocalApi } from "../start.ts";
import { LevelDisk } from "./level-disk.ts";
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

  test("what was stored is there again, what was deleted is not, and revisions go on", async () => {
    const first = await LevelDisk.open(directory);
    const store = new Store({ ...first, keptChanges: 10, onListenerError: assert.fail });
    store.put("things", thing("kept", "1"));
    store.put("things", thing("kept", "2"));
    store.put("things", thing("gone", "1"));
    store.delete("things", "gone");
    const { revision } = store;
    await store.flushed();
    await first.disk.close();

    const second = await LevelDisk.open(directory);
    const again = new Store({ ...second, keptChanges: 10, onListenerError: assert.fail });
    assert.equal(again.revision, revision);
    assert.deepEqual(
      again.list("things").map(({ metadata, value }) => [metadata.name, value]),
      [["kept", "2"]],
    );
    assert.equal(again.changesAfter(revision - 1, "things"), undefined);
    assert.deepEqual(again.changesAfter(revision, "things"), []);
    await second.disk.close();
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
