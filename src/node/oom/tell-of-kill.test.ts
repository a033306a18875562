import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { never, silentLogger } from "../../ground/base/index.ts";
import type { ObservedPod, PodUid } from "../../ground/model/index.ts";
import { type TellOfKillPorts, tellOfKill } from "./tell-of-kill.ts";

const uid = "u" as PodUid;
const id = "a".repeat(64);
const pod = testPod({ containers: [testContainer("main")] }, { uid });
const kill = { of: "cgroup", cgroup: `/kubepods/podu/${id}`, process: "tail", pid: 7 } as const;
const observed = (state: "running" | "exited"): ObservedPod =>
  ({ uid, containers: [{ id, name: "main", state }] }) as unknown as ObservedPod;

async function told(of: typeof kill | undefined, more: Partial<TellOfKillPorts>): Promise<readonly string[]> {
  const said: string[] = [];
  await tellOfKill(
    id,
    of,
    {
      log: silentLogger,
      ownerOf: () => uid,
      podOfCgroup: () => undefined,
      latest: () => observed("running"),
      inspect: () => Promise.reject(new Error("nobody asks")),
      podOf: () => pod,
      recordEvent: (_, { reason, message, fieldPath = "" }) => said.push(`${reason} ${fieldPath} ${message}`),
      doubt: (who) => said.push(`doubt ${who}`),
      ...more,
    },
    never,
  );
  return said;
}

const words =
  "OOMKilling spec.containers{main} Process tail (pid 7) of container main was killed because memory ran out";

test("a kill in a container that is known", async () => {
  assert.deepEqual(await told(kill, {}), [words]);
  const [unnamed] = await told(undefined, {});
  assert.equal(
    unnamed,
    "OOMKilling spec.containers{main} A process of container main was killed because memory ran out",
  );
});

test("a kill in a container that nobody has seen yet: the runtime is asked, by the pod of its cgroup", async () => {
  const unseen = { ownerOf: () => undefined, podOfCgroup: () => uid, latest: () => undefined };
  assert.deepEqual(await told(kill, { ...unseen, inspect: async () => observed("running") }), [words]);
  // The pod is known, its newest container not yet.
  const stale = { ...observed("running"), containers: [] };
  assert.deepEqual(await told(kill, { latest: () => stale, inspect: async () => observed("running") }), [words]);
});

test("a kill in a container that is gone, or of a runtime that does not answer, is told of all the same", async () => {
  const unnamed = ["OOMKilling  Process tail (pid 7) was killed because memory ran out"];
  const gone = { ...observed("running"), containers: [] };
  assert.deepEqual(await told(kill, { latest: () => gone, inspect: async () => gone }), unnamed);
  assert.deepEqual(await told(kill, { latest: () => undefined }), unnamed);
});

test("what has ended is looked at again; what belongs to no pod is nobody's news", async () => {
  assert.deepEqual(await told(kill, { latest: () => observed("exited") }), [words, "doubt u"]);
  assert.deepEqual(await told(kill, { podOf: () => undefined, latest: () => observed("exited") }), ["doubt u"]);
  assert.deepEqual(await told(kill, { ownerOf: () => undefined }), []);
});
