// A machine that lacks descriptors for a while must not lose its static pods over it, the API server among them.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { manifest, SourceEars, temporaryDirectory } from "../../../test/support/pod-source.ts";
import { withoutDescriptors } from "../../../test/support/without-descriptors.ts";
import { TaskScope } from "../../ground/base/index.ts";
import { FileSource } from "./file-source.ts";

test("an agent that starts without descriptors says nothing about its manifests until it can read them", async () => {
  await using temporary = await temporaryDirectory();
  const path = join(temporary.path, "manifests");
  mkdirSync(path);
  writeFileSync(join(path, "a.yaml"), manifest("a"));
  const ears = new SourceEars();
  const source = new FileSource(
    {
      path,
      checkFrequencyMs: 3_600_000,
      lastGoodDirectory: join(temporary.path, "saved"),
      nodeName: "n",
      references: { prevent: true, allow: [] },
    },
    ears.ports,
  );
  await using scope = new TaskScope();
  {
    using _ = withoutDescriptors();
    scope.spawn("file source", (signal) => source.run(signal));
    await ears.until("the trouble is told", () => (ears.problemsOf(path)?.length ?? 0) > 0);
    assert.match(ears.problemsOf(path)?.[0] ?? "", /Cannot read the manifests: EMFILE/);
    assert.deepEqual(ears.deliveries, []);
  }
  await ears.until("the pod is wanted", () => ears.pods?.join() === "a-n");
  assert.equal(ears.deliveries.length, 1);
});
