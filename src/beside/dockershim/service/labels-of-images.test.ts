import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { never, silentLogger, untilAborted } from "../../../ground/base/index.ts";
import { inspectedContainer, listedContainer } from "../engine/answers.ts";
import type { Engine, EngineEvent, InspectedContainer, ListedContainer } from "../engine/index.ts";
import { DockerContainers } from "./containers.ts";
import { logPathsOf, type ShimContext } from "./context.ts";
import { DockerEvents } from "./events.ts";
import type { ImageCache } from "./image-cache.ts";
import { DockerSandboxes } from "./sandboxes.ts";

// An image brings labels of its own, which its containers have too: by `docker run` as well as in a pod.
const claims = {
  "io.kubernetes.docker.type": "container",
  "io.kubernetes.container.logpath": "/etc/ld.so.preload",
  "io.kubernetes.sandbox.id": "s",
};
const ofPod = "k8s_web_pod_ns_uid_0";
const byHand = "happy_curie";

test("a container is given a log only where whoever made it says so, not its image", () => {
  const info = { rootDir: "/d", cgroupDriver: "", runtimes: [], liveRestore: true, securityOptions: [] };
  assert.equal(logPathsOf({ id: "a", name: ofPod, labels: claims }, info)?.target, "/etc/ld.so.preload");
  assert.equal(logPathsOf({ id: "a", name: byHand, labels: claims }, info), undefined);
});

test("a container whose image says that it is part of a pod is none of ours", async () => {
  const listed = (type: string): ListedContainer =>
    listedContainer({
      Id: type,
      Names: [`/${byHand}`],
      State: "running",
      Labels: { "io.kubernetes.docker.type": type },
    });
  const engine = {
    listContainers: async ([label = ""]: readonly string[]) => [listed(label.split("=")[1] ?? "")],
    inspectContainer: async (id: string): Promise<InspectedContainer> =>
      inspectedContainer({ Id: id, Name: byHand, Config: { Labels: { "io.kubernetes.docker.type": id } } }),
  };
  const context = { engine, clock: new FakeClock(), checkpoints: { list: async () => [] } } as unknown as ShimContext;
  const containers = new DockerContainers(context, {} as ImageCache);
  const ports = { containers, pullSandboxImage: async () => {}, podCidr: () => "" };
  const sandboxes = new DockerSandboxes(context, ports);
  assert.deepEqual([await containers.list(undefined, never), await sandboxes.list(undefined, never)], [[], []]);
  await assert.rejects(containers.find("containerStatus", "container", never), { code: "NotFound" });
  await assert.rejects(sandboxes.find("podSandboxStatus", "podsandbox", never), { code: "NotFound" });
});

test("nobody is told what happens to such a container", async () => {
  const stop = new AbortController();
  const event = (name: string): EngineEvent => ({
    type: "container",
    action: "start",
    id: name,
    attributes: { ...claims, name },
    timeNanos: 1n,
  });
  const engine = {
    async *events(signal: AbortSignal, opened: () => void) {
      opened();
      yield event(byHand);
      yield event(ofPod);
      await untilAborted(signal);
    },
  } as unknown as Engine;
  const seen: string[] = [];
  const events = new DockerEvents({
    engine,
    clock: new FakeClock(),
    log: silentLogger,
    onOpened: async () => {},
    onContainer: async ({ id }) => {
      seen.push(id);
      stop.abort();
      return { containerId: id, podSandboxStatus: undefined, containersStatuses: [] };
    },
    onImage: () => {},
  });
  await assert.rejects(events.run(stop.signal), { name: "AbortError" });
  assert.deepEqual(seen, [ofPod]);
});
