import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import {
  configHashAnnotation,
  configMirrorAnnotation,
  fullName,
  type IdentifiedPod,
} from "../../ground/model/index.ts";
import { MirrorPods } from "./mirror-pods.ts";

const version = (hash: string): IdentifiedPod =>
  testPod({}, { name: "web-n1", uid: hash, annotations: { [configHashAnnotation]: hash } });
const mirrorOf = (pod: IdentifiedPod, uid: string): IdentifiedPod => ({
  ...pod,
  metadata: {
    ...pod.metadata,
    uid,
    annotations: { ...pod.metadata.annotations, [configMirrorAnnotation]: pod.metadata.uid },
  },
});

class World implements AsyncDisposable {
  wanted: IdentifiedPod | undefined;
  mirror: IdentifiedPod | undefined;
  /** Uids of versions that have not left the node. */
  leaving: string[] = [];
  made = 0;
  readonly #scope = new TaskScope();
  readonly #mirrors = new MirrorPods(this.#scope, {
    clock: new FakeClock(),
    log: silentLogger,
    staticPod: () => this.wanted,
    isTerminating: (_, wanted) => this.leaving.some((uid) => uid !== wanted?.metadata.uid),
    mirrorPod: () => this.mirror,
    node: () => ({ metadata: { name: "n1", uid: "node" } }),
    create: async (pod) => {
      this.mirror = {
        ...(pod as IdentifiedPod),
        metadata: { ...(pod as IdentifiedPod).metadata, uid: `m${++this.made}` },
      };
    },
    delete: async () => {
      this.mirror = undefined;
    },
  });

  async wake(): Promise<string | undefined> {
    this.#mirrors.wake(fullName(version("any")));
    await settle(20);
    return this.mirror?.metadata.uid;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.stop();
  }
}

test("a mirror keeps its uid until the old version of its static pod has ended", async () => {
  await using world = new World();
  world.wanted = version("new");
  world.mirror = mirrorOf(version("old"), "known");
  world.leaving = ["old", "new"];
  assert.equal(await world.wake(), "known");
  world.leaving = ["new"];
  assert.equal(await world.wake(), "m1");
  assert.equal(world.mirror?.metadata.annotations?.[configMirrorAnnotation], "new");
});

test("a mirror that somebody deletes comes back at once; during the end of an old version, after it", async () => {
  await using world = new World();
  world.wanted = version("new");
  assert.equal(await world.wake(), "m1");
  world.mirror = undefined;
  world.leaving = ["old"];
  assert.equal(await world.wake(), undefined);
  world.leaving = [];
  assert.equal(await world.wake(), "m2");
});

test("the mirror of a removed static pod goes when the pod has", async () => {
  await using world = new World();
  world.mirror = mirrorOf(version("old"), "known");
  world.leaving = ["old"];
  assert.equal(await world.wake(), "known");
  world.leaving = [];
  assert.equal(await world.wake(), undefined);
});
