import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import type { ContainerStatus } from "../../../connections/cri/index.ts";
import { never, silentLogger } from "../../../ground/base/index.ts";
import { inspectedContainer } from "../engine/answers.ts";
import { EngineError, type EngineEvent } from "../engine/index.ts";
import { afterEvent } from "./after-event.ts";
import { DockerContainers } from "./containers.ts";
import type { ShimContext } from "./context.ts";
import { ImageCache } from "./image-cache.ts";

const labels = (type: string) => ({ "io.kubernetes.docker.type": type });
const name = "k8s_web_pod_ns_uid_0";
const event = (action: string, type: string): EngineEvent => ({
  type: "container",
  action,
  id: "a",
  attributes: { ...labels(type), name },
  timeNanos: 1n,
});

for (const { what, image, answer } of [
  { what: "an image that docker can't read", image: "sha256:x", answer: new EngineError(500, "unexpected EOF") },
  { what: "no image at all in docker's answer", image: undefined, answer: new EngineError(404, "none") },
]) {
  test(`the end of a container is told, and its code: ${what}`, async () => {
    const found = {
      Id: "a",
      Name: name,
      Image: image,
      Config: { Labels: labels("container") },
      State: { ExitCode: 3, FinishedAt: "2026-01-01T00:00:00Z" },
    };
    const engine = {
      inspectContainer: async () => inspectedContainer(found),
      inspectImage: async (id: string) => {
        throw id === "" ? new EngineError(400, "invalid reference format") : answer;
      },
    };
    const copies = { finish: async () => {} };
    const context = { engine, copies, clock: new FakeClock(), log: silentLogger } as unknown as ShimContext;
    const containers = new DockerContainers(context, new ImageCache(context.engine));
    const told = await afterEvent(context, containers, { look: async () => {} }, event("die", "container"), never);
    assert.deepEqual([told.containerId, told.containersStatuses[0]?.exitCode], ["a", 3]);
  });
}

test("the end of a container of which docker does not tell is told all the same", async () => {
  const context = { clock: new FakeClock(), log: silentLogger, copies: { finish: async () => {} } };
  const inspectContainer = async () =>
    inspectedContainer({ Id: "a", Name: name, Config: { Labels: labels("container") } });
  const containers = {
    changed: () => {},
    statusAtEnd: async (): Promise<never> => {
      throw new EngineError(500, "broken");
    },
  };
  const whole = { ...context, engine: { inspectContainer } } as unknown as ShimContext;
  const told = await afterEvent(whole, containers, { look: async () => {} }, event("die", "container"), never);
  assert.deepEqual([told.podSandboxStatus?.metadata?.name, told.containersStatuses], ["pod", []]);
});

test("a sandbox that can't be looked at after its start is nobody else's trouble; who is told to stop does", async () => {
  const context = { clock: new FakeClock(), log: silentLogger } as unknown as ShimContext;
  const containers = { changed: () => {}, statusAtEnd: async () => ({}) as ContainerStatus };
  const look = async (): Promise<never> => {
    throw new EngineError(500, "broken");
  };
  const told = await afterEvent(context, containers, { look }, event("start", "podsandbox"), never);
  assert.equal(told.containerId, "a");
  const stopped = AbortSignal.abort();
  await assert.rejects(afterEvent(context, containers, { look }, event("start", "podsandbox"), stopped));
});
