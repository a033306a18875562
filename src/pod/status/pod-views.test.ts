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
