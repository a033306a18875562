import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../../test/support/fake-clock.ts";
import type { Image } from "../../connections/cri/index.ts";
import type { ImageRequest } from "./image-puller.ts";
import { ImagePrefetch } from "./prefetch.ts";
import type { PulledImage } from "./pull-attempts.ts";

const request = (uid: string, image = "a:1"): ImageRequest => ({
  pod: { metadata: { name: uid, namespace: "ns", uid }, spec: { containers: [] } },
  image,
  pullPolicy: "IfNotPresent",
  fieldPath: "spec.containers{c}",
  pullSecrets: [],
  sandboxConfig: undefined,
  runtimeHandler: "",
});

/** Every ensure is a numbered pull that ends when told to. */
class Puller {
  readonly ends: ((error?: Error) => void)[] = [];

  ensure(_: ImageRequest, signal: AbortSignal): Promise<PulledImage> {
    const turn = this.ends.length + 1;
    return new Promise((resolve, reject) => {
      this.ends.push((error) =>
        error === undefined ? resolve({ imageRef: `pull ${turn}`, image: {} as Image }) : reject(error),
      );
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }
}

const { signal } = new AbortController();

test("what was begun is taken over, running or done, and only once", async () => {
  const puller = new Puller();
  const prefetch = new ImagePrefetch(puller);
  prefetch.begin(request("p1"), signal);
  const running = prefetch.ensure(request("p1"), signal);
  puller.ends[0]?.();
  assert.equal((await running).imageRef, "pull 1");
  prefetch.begin(request("p1"), signal);
  puller.ends[1]?.();
  await settle();
  assert.equal((await prefetch.ensure(request("p1"), signal)).imageRef, "pull 2");
  const again = prefetch.ensure(request("p1"), signal);
  puller.ends[2]?.();
  assert.equal((await again).imageRef, "pull 3");
});

test("another container, pod or image does not take it over", async () => {
  const puller = new Puller();
  const prefetch = new ImagePrefetch(puller);
  prefetch.begin(request("p1"), signal);
  const others = [
    prefetch.ensure(request("p2"), signal),
    prefetch.ensure(request("p1", "b:1"), signal),
    prefetch.ensure({ ...request("p1"), fieldPath: "spec.containers{d}" }, signal),
  ];
  assert.equal(puller.ends.length, 4);
  for (const end of puller.ends) end();
  await Promise.all(others);
});

test("a failure waits for the taker; the next begin tries again instead", async () => {
  const puller = new Puller();
  const prefetch = new ImagePrefetch(puller);
  prefetch.begin(request("p1"), signal);
  puller.ends[0]?.(new Error("no such image"));
  await settle();
  await assert.rejects(prefetch.ensure(request("p1"), signal), /no such image/);
  prefetch.begin(request("p1"), signal);
  puller.ends[1]?.(new Error("still none"));
  await settle();
  prefetch.begin(request("p1"), signal);
  assert.equal(puller.ends.length, 3);
  prefetch.begin(request("p1"), signal);
  assert.equal(puller.ends.length, 3, "one that runs is not begun twice");
  prefetch.forgetPod("p1");
  puller.ends[2]?.();
});

test("what was begun goes on for its taker though its begin's signal fires", async () => {
  const puller = new Puller();
  const prefetch = new ImagePrefetch(puller);
  const begun = new AbortController();
  prefetch.begin(request("p1"), begun.signal);
  const taken = prefetch.ensure(request("p1"), signal);
  begun.abort(new Error("sync superseded"));
  await settle();
  puller.ends[0]?.();
  assert.equal((await taken).imageRef, "pull 1");
});

test("what was stopped before anybody took it over is done anew", async () => {
  const puller = new Puller();
  const prefetch = new ImagePrefetch(puller);
  const begun = new AbortController();
  prefetch.begin(request("p1"), begun.signal);
  begun.abort(new Error("sync superseded"));
  await settle();
  const anew = prefetch.ensure(request("p1"), signal);
  puller.ends[1]?.();
  assert.equal((await anew).imageRef, "pull 2");
});

test("a taker that goes away does not wait for what was begun", async () => {
  const puller = new Puller();
  const prefetch = new ImagePrefetch(puller);
  prefetch.begin(request("p1"), signal);
  const pod = new AbortController();
  const taken = prefetch.ensure(request("p1"), pod.signal);
  pod.abort(new Error("pod deleted"));
  await assert.rejects(taken, /pod deleted/);
  puller.ends[0]?.();
});

test("a pod that goes away stops what was begun for it, and nothing is begun for it any more", async () => {
  const puller = new Puller();
  const prefetch = new ImagePrefetch(puller);
  const pod = new AbortController();
  prefetch.begin(request("p1"), pod.signal);
  const taken = prefetch.ensure(request("p1"), pod.signal);
  pod.abort(new Error("pod deleted"));
  await assert.rejects(taken, /pod deleted/);
  prefetch.begin(request("p1"), pod.signal);
  assert.equal(puller.ends.length, 1);
});
