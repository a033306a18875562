import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { never } from "../../../ground/base/index.ts";
import { type InspectedContainer, inspectedContainer } from "../engine/answers.ts";
import { DockerContainers } from "./containers.ts";
import type { ShimContext } from "./context.ts";
import type { ImageCache } from "./image-cache.ts";
import { JustEnded } from "./just-ended.ts";

const ended = (id: string, exitCode: number, running = false): InspectedContainer =>
  inspectedContainer({
    Id: id,
    Name: "/k8s_main_pod_ns_uid_0",
    Image: "sha256:i",
    Config: { Labels: { "io.kubernetes.docker.type": "container" } },
    State: { Running: running, ExitCode: exitCode, FinishedAt: "2026-01-01T00:00:01Z" },
    HostConfig: {},
  });

test("whoever asks because of an end costs docker no second look, unless something has happened since", async () => {
  const clock = new FakeClock();
  const looks: string[] = [];
  const inspectContainer = async (id: string): Promise<InspectedContainer> => {
    looks.push(id);
    return ended(id, 7);
  };
  const context = { clock, engine: { inspectContainer }, copies: { finish: async () => {} } };
  const images = { get: async () => undefined } as unknown as ImageCache;
  const containers = new DockerContainers(context as unknown as ShimContext, images);
  await containers.statusAtEnd(ended("a", 3), never);
  assert.equal((await containers.status("a", never)).exitCode, 3);
  assert.deepEqual(looks, []);
  containers.changed("a");
  assert.equal((await containers.status("a", never)).exitCode, 7);
  await containers.statusAtEnd(ended("a", 3), never);
  await clock.advance(1_000);
  assert.equal((await containers.status("a", never)).exitCode, 7);
  assert.deepEqual(looks, ["a", "a"]);
});

test("one that runs again is not kept, and never more than a hundred are", () => {
  const seen = new JustEnded(new FakeClock());
  seen.saw(ended("a", 0));
  seen.saw(ended("a", 0, true));
  assert.equal(seen.get("a"), undefined);
  for (let count = 0; count <= 100; count++) seen.saw(ended(String(count), 0));
  assert.deepEqual([seen.get("0"), seen.get("1")?.id, seen.get("100")?.id], [undefined, "1", "100"]);
});
