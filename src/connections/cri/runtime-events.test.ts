import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { silentLogger } from "../../ground/base/index.ts";
import { CriError } from "./errors.ts";
import { Envelope } from "./gen/containerd/events.ts";
import { TaskExit } from "./gen/containerd/payloads.ts";
import {
  ContainerEventResponse,
  ContainerEventType,
  ContainerState,
  ContainerStatusResponse,
  PodSandboxState,
  PodSandboxStatusResponse,
  type VersionResponse,
} from "./gen/index.ts";
import type { RuntimeEvent } from "./runtime-event.ts";
import { RuntimeEvents } from "./runtime-events.ts";

/** A stream the test feeds: items, an end, or an error; it also ends with its signal, as a real one does. */
class Feed<Item> {
  readonly #queue: (Item | "end" | Error)[] = [];
  #wake = (): void => {};
  opened = 0;
  open = 0;

  push(item: Item | "end" | Error): void {
    this.#queue.push(item);
    this.#wake();
  }

  async *stream(signal: AbortSignal | undefined): AsyncGenerator<Item, void> {
    this.opened++;
    this.open++;
    try {
      for (;;) {
        signal?.throwIfAborted();
        const item = this.#queue.shift();
        if (item === "end") return;
        if (item instanceof Error) throw item;
        if (item !== undefined) yield item;
        else {
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
            signal?.addEventListener("abort", () => resolve(), { once: true });
          });
        }
      }
    } finally {
      this.open--;
    }
  }
}

const version: VersionResponse = { version: "0.1.0", runtimeName: "r", runtimeVersion: "1", runtimeApiVersion: "v1" };
const unimplemented = new CriError("Unimplemented", "getContainerEvents", "method not implemented");
const unavailable = new CriError("Unavailable", "getContainerEvents", "connection dropped");

function subscribe({ reachable } = { reachable: true }) {
  const clock = new FakeClock();
  const cri = new Feed<ContainerEventResponse>();
  const containerd = new Feed<Envelope>();
  const runtime = { reachable };
  const containers = new Map<string, ContainerState>();
  const sandboxes = new Map<string, PodSandboxState>();
  const requests: { filters: string[]; namespace: string }[] = [];
  const runtimeEvents = new RuntimeEvents({
    clock,
    log: silentLogger,
    runtime: {
      async version() {
        if (!runtime.reachable) throw new CriError("Unavailable", "version", "connect ENOENT");
        return version;
      },
      getContainerEvents: (_request, options) => cri.stream(options?.signal),
      async containerStatus({ containerId }) {
        const state = containers.get(containerId);
        if (state === undefined) throw new CriError("NotFound", "containerStatus", "not found");
        return ContainerStatusResponse.fromPartial({ status: { id: containerId, state } });
      },
      async podSandboxStatus({ podSandboxId }) {
        const state = sandboxes.get(podSandboxId);
        if (state === undefined) throw new CriError("NotFound", "podSandboxStatus", "not found");
        return PodSandboxStatusResponse.fromPartial({ status: { id: podSandboxId, state } });
      },
    },
    containerdEvents: ({ filters }, namespace, signal) => {
      requests.push({ filters, namespace });
      return containerd.stream(signal);
    },
  });
  const stopping = new AbortController();
  const seen: RuntimeEvent[] = [];
  const ended = (async () => {
    for await (const hint of runtimeEvents.subscribe(stopping.signal)) seen.push(hint);
  })().catch((error: unknown) => error);
  const stop = async (): Promise<void> => {
    stopping.abort();
    assert.equal(await ended, stopping.signal.reason);
    assert.deepEqual({ cri: cri.open, containerd: containerd.open }, { cri: 0, containerd: 0 });
    assert.equal(getEventListeners(stopping.signal, "abort").length, 0);
    assert.equal(clock.pendingTimers, 0);
  };
  return { clock, cri, containerd, runtime, containers, sandboxes, requests, runtimeEvents, seen, stop };
}

function stopped(id: string): ContainerEventResponse {
  return ContainerEventResponse.fromPartial({
    containerId: id,
    containerEventType: ContainerEventType.CONTAINER_STOPPED_EVENT,
    podSandboxStatus: { id: "sandbox", metadata: { uid: "uid", name: "p", namespace: "n" } },
  });
}

function exited(id: string): Envelope {
  const value = Buffer.from(TaskExit.encode(TaskExit.fromPartial({ containerId: id, id })).finish());
  return Envelope.fromPartial({ namespace: "k8s.io", event: { typeUrl: "containerd.events.TaskExit", value } });
}

test("CRI events where offered: a gap first, then hints that name pod and sandbox", async () => {
  const { clock, cri, runtimeEvents, seen, stop } = subscribe();
  await clock.advance(100);
  assert.deepEqual(seen, [{ kind: "gap", source: "cri" }]);
  assert.equal(runtimeEvents.source, "cri");
  cri.push(stopped("c1"));
  cri.push(ContainerEventResponse.fromPartial({ containerId: "c2" }));
  await settle();
  assert.deepEqual(seen.slice(1), [
    { kind: "stopped", id: "c1", podUid: "uid", sandboxId: "sandbox" },
    { kind: "created", id: "c2" },
  ]);
  await stop();
});

test("an event that arrives before the stream is known to be accepted is not lost", async () => {
  const { cri, seen, stop } = subscribe();
  cri.push(stopped("early"));
  await settle();
  assert.deepEqual(
    seen.map((hint) => hint.kind),
    ["gap", "stopped"],
  );
  await stop();
});

for (const [name, ending] of [
  ["Unimplemented", unimplemented],
  ["an end at once", "end"],
] as const) {
  test(`${name} means not offered: containerd's own events are used, in its CRI namespace`, async () => {
    const { clock, cri, containerd, requests, runtimeEvents, seen, stop } = subscribe();
    cri.push(ending);
    await clock.advance(100);
    assert.deepEqual(seen, [{ kind: "gap", source: "containerd" }]);
    assert.equal(runtimeEvents.source, "containerd");
    assert.equal(requests[0]?.namespace, "k8s.io");
    assert.ok(requests[0]?.filters.includes('namespace==k8s.io,topic=="/tasks/exit"'));
    containerd.push(exited("c1"));
    await settle();
    assert.deepEqual(seen.slice(1), [{ kind: "stopped", id: "c1" }]);
    await stop();
  });
}

test("a broken stream is renewed by itself, and each renewal begins with a gap", async () => {
  const { clock, cri, containerd, runtime, runtimeEvents, seen, stop } = subscribe();
  cri.push(unimplemented);
  await clock.advance(100);
  runtime.reachable = false;
  containerd.push(unavailable);
  cri.push(unavailable);
  cri.push(unavailable);
  await clock.advance(500);
  assert.equal(runtimeEvents.source, undefined);
  assert.equal(seen.length, 1, "no gap while there is no connection");
  runtime.reachable = true;
  await clock.advance(3_000);
  assert.deepEqual(seen.slice(1), [{ kind: "gap", source: "cri" }]);
  await stop();
});

test("while the runtime is away it is asked at a bounded rate", async () => {
  const { clock, cri, seen, stop } = subscribe({ reachable: false });
  await clock.advance(60_000);
  assert.ok(cri.opened >= 28 && cri.opened <= 40, `asked ${cri.opened} times in a minute`);
  assert.deepEqual(seen, []);
  assert.equal(cri.open <= 1, true, "attempts that failed leave no stream open");
  await stop();
});

test("a stream that lived and then ends is broken, not absent", async () => {
  const { clock, cri, seen, stop } = subscribe();
  await clock.advance(10_000);
  cri.push("end");
  await clock.advance(1_000);
  assert.deepEqual(seen, [
    { kind: "gap", source: "cri" },
    { kind: "gap", source: "cri" },
  ]);
  await stop();
});

test("a runtime without any events says so once, and is asked again later", async () => {
  const { clock, cri, containerd, runtimeEvents, seen, stop } = subscribe();
  cri.push(unimplemented);
  containerd.push(new CriError("Unimplemented", "containerdEvents", "unknown service"));
  await clock.advance(60_000);
  assert.deepEqual(seen, [{ kind: "gap", source: "none" }]);
  assert.equal(runtimeEvents.source, "none");
  await clock.advance(300_000);
  assert.deepEqual(seen.slice(1), [{ kind: "gap", source: "cri" }]);
  await stop();
});

test("containerd tells of an exit before its status does: the hint waits for the status, others do not wait for it", async () => {
  const { clock, cri, containerd, containers, seen, stop } = subscribe();
  cri.push(unimplemented);
  await clock.advance(100);
  containers.set("slow", ContainerState.CONTAINER_RUNNING);
  containers.set("quick", ContainerState.CONTAINER_EXITED);
  containerd.push(exited("slow"));
  containerd.push(exited("quick"));
  containerd.push(exited("gone"));
  await clock.advance(1_000);
  const ids = () => seen.flatMap((hint) => (hint.kind === "gap" ? [] : [hint.id]));
  assert.deepEqual(ids(), ["quick", "gone"]);
  containers.set("slow", ContainerState.CONTAINER_EXITED);
  await clock.advance(500);
  assert.deepEqual(ids(), ["quick", "gone", "slow"]);
  await stop();
});

test("the exit of a sandbox waits for its status too; an exit that never shows is told in the end", async () => {
  const { clock, cri, containerd, containers, sandboxes, seen, stop } = subscribe();
  cri.push(unimplemented);
  await clock.advance(100);
  sandboxes.set("sandbox", PodSandboxState.SANDBOX_READY);
  containers.set("stuck", ContainerState.CONTAINER_RUNNING);
  containerd.push(exited("sandbox"));
  containerd.push(exited("stuck"));
  await clock.advance(2_000);
  assert.equal(seen.length, 1);
  sandboxes.set("sandbox", PodSandboxState.SANDBOX_NOTREADY);
  await clock.advance(500);
  assert.deepEqual(seen.slice(1), [{ kind: "stopped", id: "sandbox" }]);
  await clock.advance(10_000);
  assert.deepEqual(seen.slice(2), [{ kind: "stopped", id: "stuck" }]);
  await stop();
});

test("leaving the subscription early closes its streams", async () => {
  const { clock, cri, runtimeEvents, stop } = subscribe();
  await clock.advance(100);
  const other = runtimeEvents.subscribe(new AbortController().signal);
  const first = other.next();
  await clock.advance(100);
  assert.deepEqual(await first, { done: false, value: { kind: "gap", source: "cri" } });
  assert.equal(cri.open, 2);
  await other.return(undefined as never);
  assert.equal(cri.open, 1);
  await stop();
});
