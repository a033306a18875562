import assert from "node:assert/strict";
import { test } from "node:test";
import type { IdentifiedPod } from "../../ground/model/index.ts";
import { PatchAnswers } from "./patch-answers.ts";

const pod = (resourceVersion: string): IdentifiedPod =>
  ({ metadata: { name: "a", namespace: "b", uid: "u", resourceVersion }, spec: { containers: [] } }) as IdentifiedPod;

test("an answer counts until the watch has caught up, and not after a list of a server that was set back", () => {
  const answers = new PatchAnswers();
  assert.equal(answers.newest(undefined), undefined);
  const watched = pod("100");
  assert.equal(answers.newest(watched), watched);
  const answer = pod("105");
  answers.set(answer);
  assert.equal(answers.newest(watched), answer);
  const later = pod("106");
  assert.equal(answers.newest(later), later);
  answers.clear();
  assert.equal(answers.newest(watched), watched);
});

test("versions that are no numbers end nothing: the watch is believed", () => {
  const answers = new PatchAnswers();
  answers.set(pod("v2.x"));
  const watched = pod("v1.x");
  assert.equal(answers.newest(watched), watched);
});
