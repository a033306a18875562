import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { Ledger, silentLogger } from "../../ground/base/index.ts";
import {
  configMirrorAnnotation,
  configSourceAnnotation,
  type IdentifiedPod,
  type PodUid,
} from "../../ground/model/index.ts";
import { PodViews } from "./pod-views.ts";
import { StatusStore } from "./store.ts";

function pod(name: string, uid: string, annotations: Record<string, string>): IdentifiedPod {
  return { metadata: { name, namespace: "ns", uid: uid as PodUid, annotations }, spec: { containers: [] } };
}

test("the uid of a mirror stands for its static pod; any other stands for itself", () => {
  const fixed = pod("fixed", "static", { [configSourceAnnotation]: "file" });
  const mirror = pod("fixed", "mirror", { [configSourceAnnotation]: "api", [configMirrorAnnotation]: "x" });
  const orphan = pod("gone", "orphan", { [configSourceAnnotation]: "api", [configMirrorAnnotation]: "x" });
  const plain = pod("plain", "plain", { [configSourceAnnotation]: "api" });
  const views = new PodViews({
    statuses: new StatusStore(silentLogger),
    ledger: new Ledger(new FakeClock()),
    wanted: () => [fixed, mirror, orphan, plain],
  });
  views.wanted(fixed);
  views.wanted(plain);
  for (const [asked, own] of [
    ["static", "static"],
    ["mirror", "static"],
    ["orphan", "orphan"],
    ["plain", "plain"],
    ["unknown", "unknown"],
  ] as const) {
    assert.equal(views.ownUid(asked), own, asked);
  }
});

test("who watches hears of a status that is still what it was before the agent's restart", () => {
  const statuses = new StatusStore(silentLogger);
  const views = new PodViews({ statuses, ledger: new Ledger(new FakeClock()), wanted: () => [] });
  const plain = pod("plain", "plain", { [configSourceAnnotation]: "api" });
  const heard: (string | undefined)[] = [];
  const sent: unknown[] = [];
  views.watchPods(({ object }) => heard.push(object.status?.phase));
  statuses.onChange((_, status) => sent.push(status));
  views.wanted(plain);
  statuses.restore("plain" as PodUid, { phase: "Running" });
  for (let look = 0; look < 3; look++) statuses.set(plain, { phase: "Running" });
  assert.deepEqual([heard, sent], [[undefined, "Running"], []]);
});
