import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { CriError, type ImageContent, type Ingest, type ManifestLayers } from "../../connections/cri/index.ts";
import { never } from "../../ground/base/index.ts";
import { ownManifests, PullProgressReader, progressOf, underWay } from "./pull-progress.ts";
import type { PullInProgress } from "./pull-queue.ts";

const layers = (...sizes: readonly [digest: string, bytes: number][]): ManifestLayers => ({
  digest: `m-${sizes.map(([digest]) => digest).join("")}`,
  layers: sizes.map(([digest, bytes]) => ({ digest, bytes })),
});
const ingest = (digest: string, bytes: number): Ingest => ({ digest, bytes, totalBytes: 0 });

for (const { what, manifests, ingests, found } of [
  { what: "nothing on its way", manifests: [layers(["a", 1])], ingests: [], found: [] },
  { what: "another image's layer", manifests: [layers(["a", 1])], ingests: [ingest("z", 1)], found: [] },
  {
    what: "an older image of the repository",
    manifests: [layers(["old", 1]), layers(["a", 1], ["b", 2])],
    ingests: [ingest("b", 1)],
    found: ["m-ab"],
  },
]) {
  test(`manifests under way: ${what}`, () => {
    assert.deepEqual(
      underWay(manifests, ingests).map(({ digest }) => digest),
      found,
    );
  });
}

for (const { what, image, others, own } of [
  { what: "both, while nothing tells them apart", image: "web:1", others: [], own: ["m-a", "m-b"] },
  { what: "what the other pull is not known to fetch", image: "web:2", others: [layers(["a", 1])], own: ["m-b"] },
  { what: "what it names", image: "web@m-a", others: [], own: ["m-a"] },
  {
    what: "the same, for two tags of one image",
    image: "web:3",
    others: [layers(["a", 1]), layers(["b", 1])],
    own: ["m-a", "m-b"],
  },
]) {
  test(`two pulls of one repository, told of ${image}: ${what}`, () => {
    const found = ownManifests(image, [layers(["a", 1]), layers(["b", 1])], others);
    assert.deepEqual(
      found.map(({ digest }) => digest),
      own,
    );
  });
}

test("progress counts what is here, what is on its way, and never more than there is", () => {
  const { layers: wanted } = layers(["done", 100], ["half", 60], ["waits", 40], ["liar", 10]);
  const ingests = [ingest("half", 30), ingest("liar", 1e9)];
  assert.deepEqual(progressOf(wanted, ingests, new Set(["done"])), {
    bytes: 140,
    totalBytes: 210,
    layers: { done: 1, total: 4 },
  });
});

class FakeContent implements ImageContent {
  asked = 0;
  underWay: readonly Ingest[] = [ingest("a", 5)];
  here: readonly string[] = [];
  failure: Error | undefined;
  manifestsHere: readonly ManifestLayers[] = [layers(["a", 10])];
  readonly repositories: string[] = [];

  async ingests(): Promise<readonly Ingest[]> {
    this.asked++;
    if (this.failure !== undefined) throw this.failure;
    return this.underWay;
  }

  async manifests(registry: string, repository: string): Promise<readonly ManifestLayers[]> {
    this.repositories.push(`${registry} ${repository}`);
    return this.manifestsHere;
  }

  async present(): Promise<ReadonlySet<string>> {
    return new Set(this.here);
  }
}

function reader(pulls: readonly PullInProgress[], content: ImageContent | undefined) {
  const clock = new FakeClock();
  return { clock, reader: new PullProgressReader({ list: () => pulls, content: () => content, clock }) };
}

const pull: PullInProgress = { image: "web:1", podUids: ["p"], ageMs: 7 };

test("however many look, the runtime is asked once a second", async () => {
  const content = new FakeContent();
  const { clock, reader: progress } = reader([pull], content);
  const expected = { ...pull, progress: { bytes: 5, totalBytes: 10, layers: { done: 0, total: 1 } } };
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => progress.look(never))), [[expected], [expected], [expected]]);
  await clock.advance(999);
  await progress.look(never);
  assert.equal(content.asked, 1);
  await clock.advance(1);
  // Everything has come and is being unpacked: nothing is on its way any more.
  content.underWay = [];
  content.here = ["a"];
  const [unpacking] = await progress.look(never);
  assert.deepEqual(unpacking?.progress, { bytes: 10, totalBytes: 10, layers: { done: 1, total: 1 } });
  assert.deepEqual([content.asked, content.repositories], [2, ["docker.io library/web"]]);
});

test("nothing is asked while nothing is pulled, and nothing is said where nobody knows", async () => {
  const idle = new FakeContent();
  assert.deepEqual(await reader([], idle).reader.look(never), []);
  const queued = { ...pull, ageMs: undefined };
  assert.deepEqual(await reader([queued], idle).reader.look(never), [queued]);
  assert.equal(idle.asked, 0);
  assert.deepEqual(await reader([pull], undefined).reader.look(never), [pull]);
});

test("a runtime that can't tell is asked once; one that fails is asked again", async () => {
  for (const { code, times } of [
    { code: "Unimplemented", times: 1 },
    { code: "Unavailable", times: 2 },
  ] as const) {
    const content = new FakeContent();
    content.failure = new CriError(code, "listContentStatuses", "no");
    const { clock, reader: progress } = reader([pull], content);
    assert.deepEqual(await progress.look(never), [pull]);
    await clock.advance(1000);
    assert.deepEqual(await progress.look(never), [pull]);
    assert.equal(content.asked, times);
  }
});

test("who leaves takes nothing from those who stay", async () => {
  const content = new FakeContent();
  const { reader: progress } = reader([pull], content);
  const left = new AbortController();
  const first = progress.look(left.signal);
  const second = progress.look(never);
  left.abort(new Error("left"));
  await assert.rejects(first, /left/);
  assert.equal((await second)[0]?.progress?.bytes, 5);
  assert.equal(content.asked, 1);
});

test("two pulls of one repository: the second is told apart from the first, a layer that occurs twice counts once", async () => {
  const content = new FakeContent();
  const pulls = [pull];
  const { clock, reader: progress } = reader(pulls, content);
  await progress.look(never);
  pulls.push({ ...pull, image: "web:2" });
  content.manifestsHere = [layers(["a", 10]), layers(["b", 20], ["b", 20])];
  content.underWay = [ingest("a", 6), ingest("b", 1)];
  await clock.advance(1000);
  const told = await progress.look(never);
  assert.deepEqual(
    told.map(({ progress: far }) => [far?.bytes, far?.totalBytes]),
    [
      [6, 10],
      [1, 20],
    ],
  );
});
