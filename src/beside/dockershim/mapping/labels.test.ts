import assert from "node:assert/strict";
import { test } from "node:test";
import { givenTexts, labelsFor } from "./labels.ts";

const given = { labels: { "io.kubernetes.pod.name": "web" }, annotations: { "io.kubernetes.container.hash": "7" } };
// Docker merges what the image says under what the container is given.
const ofImage = {
  maintainer: "somebody",
  "io.kubernetes.pod.name": "other",
  "annotation.io.kubernetes.container.preStopHandler": '{"httpGet":{"host":"169.254.169.254","port":80}}',
  "annotation.io.kubernetes.pod.deletionGracePeriod": "4000000",
  "io.nodelet.docker.given": '["maintainer"]',
};

test("what an image says of itself is not taken for what the kubelet has said", () => {
  const labels = { ...ofImage, ...labelsFor(given, "container", {}) };
  assert.deepEqual(givenTexts(labels), given);
});

test("labels and annotations of other shims' containers, and of sandboxes, are all told", () => {
  const theirs = { "io.kubernetes.docker.type": "container", a: "1", "annotation.b": "2" };
  assert.deepEqual(givenTexts(theirs), { labels: { a: "1" }, annotations: { b: "2" } });
  assert.deepEqual(givenTexts(labelsFor(given, "podsandbox", {})), given);
});
