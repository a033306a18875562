import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { withoutDescriptors } from "../../../../test/support/without-descriptors.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import { type AllocatedResources, fnv1a32, type PodUid } from "../../../ground/model/index.ts";
import { ResourcesFile } from "./resources-file.ts";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nodelet-resources-"));
  path = join(directory, "allocated_pods_state");
});
afterEach(() => rmSync(directory, { recursive: true }));

const kubelets = {
  data: '{"entries":{"pod1":{"ContainerResources":{"container1":{"requests":{"cpu":"1Ki","memory":"1Ki"}}}}}}',
  checksum: 1178570812,
};
const resources: AllocatedResources = { containers: { container1: { requests: { cpu: "1Ki", memory: "1Ki" } } } };
const file = (content: ReadonlyMap<PodUid, AllocatedResources> = new Map()): ResourcesFile =>
  new ResourcesFile(path, silentLogger, () => content);

test("a file of the kubelet's is read, and written to the letter", async () => {
  writeFileSync(path, JSON.stringify(kubelets));
  const read = await file().read();
  assert.deepEqual([...read], [["pod1", resources]]);
  await file(read).save();
  assert.equal(readFileSync(path, "utf8"), JSON.stringify(kubelets));
});

for (const [what, pod, data] of [
  ["something", { limits: { cpu: "1" } }, '"PodLevelResources":{"limits":{"cpu":"1"}}'],
  ["nothing", "none", '"withoutPodLevelResources":true'],
] as const) {
  test(`that a pod was promised ${what} as a whole is kept`, async () => {
    const kept = new Map([["pod1" as PodUid, { ...resources, pod }]]);
    await file(kept).save();
    assert.ok(JSON.parse(readFileSync(path, "utf8")).data.includes(data));
    assert.deepEqual(await file().read(), kept);
  });
}

test("what a later kubelet writes of a pod that has nothing as a whole says nothing", async () => {
  const data = '{"entries":{"pod1":{"ContainerResources":{},"PodLevelResources":null}}}';
  writeFileSync(path, JSON.stringify({ data, checksum: fnv1a32(`(string)${data}`) }));
  assert.deepEqual([...(await file().read())], [["pod1", { containers: {} }]]);
});

test("no file: nothing is known", async () => assert.equal((await file().read()).size, 0));

describe("a file that can't be used is set aside, and nothing is known", () => {
  for (const [what, text] of [
    ["cut off", JSON.stringify(kubelets).slice(0, 40)],
    ["empty", ""],
    ["damaged", JSON.stringify({ ...kubelets, data: kubelets.data.replace("1Ki", "2Ki") })],
    ["of another form", JSON.stringify({ data: 5, checksum: 1 })],
    ["no object", "[]"],
  ] as const) {
    test(what, async () => {
      writeFileSync(path, text);
      assert.equal((await file().read()).size, 0);
      assert.equal(readFileSync(`${path}.broken`, "utf8"), text);
      assert.equal(existsSync(path), false);
    });
  }
});

test("a file that can't be read for want of descriptors stays where it is", async () => {
  writeFileSync(path, JSON.stringify(kubelets));
  {
    using _ = withoutDescriptors();
    await assert.rejects(file().read(), { code: "EMFILE" });
  }
  assert.deepEqual([...(await file().read())], [["pod1", resources]]);
});

test("changes that come while one is written are written together, the newest last", async () => {
  const content = new Map<PodUid, AllocatedResources>();
  const saved = file(content);
  const saves = Array.from({ length: 50 }, (_, index) => {
    content.set(`pod${index}` as PodUid, resources);
    return saved.save();
  });
  await Promise.all(saves);
  assert.equal((await file().read()).size, 50);
  assert.ok(new Set(saves).size <= 2, "two writes at the most");
});
