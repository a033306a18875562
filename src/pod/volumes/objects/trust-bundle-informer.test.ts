import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeApi, refusal } from "../../../../test/support/fake-api.ts";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { resources } from "../../../connections/kube/index.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import { TrustBundleInformer } from "./trust-bundle-informer.ts";

const never = new AbortController().signal;
const bundle = (trustBundle: string) => ({ metadata: {}, spec: { trustBundle } });

test("trust bundles are followed from the first question on, and changes told", async () => {
  const api = new FakeApi();
  const clock = new FakeClock();
  await using scope = new TaskScope();
  const bundles = new TrustBundleInformer({ client: api, clock, log: silentLogger, random: () => 0.5 }, scope);
  let changes = 0;
  bundles.onChange(() => changes++);
  api.put(resources.clusterTrustBundles, { name: "roots" }, bundle("a"));
  await settle();
  assert.equal(api.calls.length, 0, "nobody has asked yet");
  const texts = async (): Promise<readonly string[]> => (await bundles.list(never)).map(({ spec }) => spec.trustBundle);
  assert.deepEqual(await texts(), ["a"]);
  const before = changes;
  api.put(resources.clusterTrustBundles, { name: "roots" }, bundle("b"));
  await settle();
  assert.deepEqual(await texts(), ["b"]);
  assert.equal(changes, before + 1);
  assert.equal(api.calls.filter(({ verb }) => verb === "watch").length, 1);
});

test("a server that does not know trust bundles is waited for ten seconds, then the pod is told", async () => {
  const api = new FakeApi();
  api.trouble = () => {
    throw refusal(404, "NotFound", "the server could not find the requested resource");
  };
  const clock = new FakeClock();
  await using scope = new TaskScope();
  const bundles = new TrustBundleInformer({ client: api, clock, log: silentLogger, random: () => 0.5 }, scope);
  const listing = assert.rejects(bundles.list(never), /ClusterTrustBundle informer has not yet synced/);
  await clock.advance(9_000);
  await clock.advance(1_000);
  await listing;
});
