import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { testPod } from "../../../test/support/pods.ts";
import { withoutDescriptors } from "../../../test/support/without-descriptors.ts";
import type { PodUid } from "../../ground/model/index.ts";
import { defaultUserIdPool, UserIds } from "./user-ids.ts";

test("ranges do not overlap, last for the pod's life, survive the agent and are given back", async (t) => {
  const podsDir = await mkdtemp(join(tmpdir(), "nodelet-ids-"));
  t.after(() => rm(podsDir, { recursive: true }));
  const ids = new UserIds(podsDir, defaultUserIdPool());
  const [a, b] = [testPod({}, { uid: "a" }), testPod({}, { uid: "b" })];
  assert.deepEqual(await ids.allocate(a), { firstHostId: 65_536, length: 65_536 });
  assert.deepEqual(await ids.allocate(b), { firstHostId: 131_072, length: 65_536 });
  assert.deepEqual(await ids.allocate(a), { firstHostId: 65_536, length: 65_536 });
  assert.equal(
    await readFile(join(podsDir, "b", "userns"), "utf8"),
    '{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}',
  );
  const later = new UserIds(podsDir, defaultUserIdPool());
  await later.restore();
  assert.deepEqual(await later.allocate(testPod({}, { uid: "c" })), { firstHostId: 196_608, length: 65_536 });
  later.release("a" as PodUid);
  assert.deepEqual(await later.allocate(testPod({}, { uid: "d" })), { firstHostId: 65_536, length: 65_536 });
});

for (const content of ["", "7", '{"uidMappings":[{"hostId":7,"containerId":0,"length":65536}]}', '{"uidMappings":7}']) {
  test(`a file that holds ${content || "nothing"} keeps only new pods from having ranges, and only while its pod is here`, async (t) => {
    const podsDir = await mkdtemp(join(tmpdir(), "nodelet-ids-"));
    t.after(() => rm(podsDir, { recursive: true }));
    const before = new UserIds(podsDir, defaultUserIdPool());
    for (const uid of ["a", "b"]) await before.allocate(testPod({}, { uid }));
    await writeFile(join(podsDir, "a", "userns"), content);
    const ids = new UserIds(podsDir, defaultUserIdPool());
    const [problem = "", ...others] = await ids.restore();
    assert.match(problem, /a\/userns does not hold one range of 65536 ids/);
    assert.deepEqual(others, []);
    assert.deepEqual(await ids.allocate(testPod({}, { uid: "b" })), { firstHostId: 131_072, length: 65_536 });
    for (const uid of ["a", "c"]) await assert.rejects(ids.allocate(testPod({}, { uid })), /a\/userns does not hold/);
    ids.release("a" as PodUid);
    assert.deepEqual(await ids.allocate(testPod({}, { uid: "c" })), { firstHostId: 65_536, length: 65_536 });
  });
}

test("a full pool says so", async (t) => {
  const podsDir = await mkdtemp(join(tmpdir(), "nodelet-ids-"));
  t.after(() => rm(podsDir, { recursive: true }));
  const ids = new UserIds(podsDir, { firstId: 65_536, length: 65_536, count: 1 });
  await ids.allocate(testPod({}, { uid: "a" }));
  await assert.rejects(ids.allocate(testPod({}, { uid: "b" })), /all 1 ranges/);
});

test("a range that could not be written is not used before it is, so that no later pod is given the same", async (t) => {
  const podsDir = await mkdtemp(join(tmpdir(), "nodelet-ids-"));
  t.after(() => rm(podsDir, { recursive: true }));
  const ids = new UserIds(podsDir, defaultUserIdPool());
  // Stands for a full disk: the file can't be made.
  await mkdir(join(podsDir, "a", "userns.tmp"), { recursive: true });
  for (let tries = 0; tries < 2; tries++) {
    await assert.rejects(ids.allocate(testPod({}, { uid: "a" })), { code: "EISDIR" });
  }
  await rm(join(podsDir, "a", "userns.tmp"), { recursive: true });
  assert.deepEqual(await ids.allocate(testPod({}, { uid: "a" })), { firstHostId: 65_536, length: 65_536 });
  const later = new UserIds(podsDir, defaultUserIdPool());
  await later.restore();
  assert.deepEqual(await later.allocate(testPod({}, { uid: "b" })), { firstHostId: 131_072, length: 65_536 });
});

test("a directory of pods that can't be read is not taken for an empty one", async () => {
  await assert.rejects(new UserIds(join(tmpdir(), "x".repeat(300)), defaultUserIdPool()).restore(), /ENAMETOOLONG/);
  assert.deepEqual(await new UserIds(join(tmpdir(), "nodelet-no-pods"), defaultUserIdPool()).restore(), []);
});

test("ranges that could not be read for want of descriptors are read when there are some again", async (t) => {
  const podsDir = await mkdtemp(join(tmpdir(), "nodelet-ids-"));
  t.after(() => rm(podsDir, { recursive: true }));
  const before = new UserIds(podsDir, defaultUserIdPool());
  await before.allocate(testPod({}, { uid: "a" }));
  const ids = new UserIds(podsDir, defaultUserIdPool());
  {
    using _ = withoutDescriptors();
    assert.match((await ids.restore()).join(), /EMFILE/);
    await assert.rejects(ids.allocate(testPod({}, { uid: "b" })), /EMFILE/);
  }
  assert.deepEqual(await ids.allocate(testPod({}, { uid: "b" })), { firstHostId: 131_072, length: 65_536 });
  assert.deepEqual(await ids.allocate(testPod({}, { uid: "a" })), { firstHostId: 65_536, length: 65_536 });
});
