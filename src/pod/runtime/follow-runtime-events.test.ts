import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { exited, observedPod, testObserved, testUid } from "../../../test/support/pods.ts";
import type { RuntimeEvent } from "../../connections/cri/index.ts";
import type { ObservedPod, PodUid } from "../../ground/model/index.ts";
import { followRuntimeEvents } from "./follow-runtime-events.ts";

interface Feed {
  readonly clock: FakeClock;
  readonly woken: PodUid[];
  missed: number;
  latest: ObservedPod | undefined;
}

async function feed(runtimeEvents: readonly RuntimeEvent[], latest: ObservedPod | undefined): Promise<Feed> {
  const state: Feed = { clock: new FakeClock(), woken: [], missed: 0, latest };
  const signal = new AbortController().signal;
  const stream = async function* (): AsyncGenerator<RuntimeEvent> {
    yield* runtimeEvents;
  };
  await followRuntimeEvents(
    {
      clock: state.clock,
      subscribe: stream,
      ownerOf: (id) => (id === "main-0" ? testUid : undefined),
      latest: () => state.latest,
      runtimeChanged: (uid) => state.woken.push(uid),
      somethingMissed: () => {
        state.missed++;
      },
    },
    signal,
  );
  await settle();
  return state;
}

const running = observedPod({ containers: [testObserved("main")] });
const ended = observedPod({ containers: [exited("main", 0)] });

describe("events of the runtime", () => {
  for (const [name, kind, latest, wakes] of [
    ["an end we did not know of wakes the pod", "stopped", running, 1],
    ["an end we know of does not", "stopped", ended, 0],
    ["the echo of our own start does not", "started", running, 0],
    ["a start we did not know of does", "started", observedPod(), 1],
    ["the echo of our own creation does not", "created", running, 0],
    ["a deletion we did not know of does", "deleted", running, 1],
    ["a deletion of what we forgot does not", "deleted", observedPod(), 0],
    ["running out of memory always does", "oom", running, 1],
  ] as const) {
    test(name, async () => assert.equal((await feed([{ kind, id: "main-0" }], latest)).woken.length, wakes));
  }

  test("an unknown id wakes nobody", async () =>
    assert.equal((await feed([{ kind: "stopped", id: "other" }], running)).woken.length, 0));
  test("a gap asks for a relist", async () =>
    assert.equal((await feed([{ kind: "gap", source: "cri" }], running)).missed, 1));
  test("an end that the lists don't show yet is looked for again, until they do", async () => {
    const state = await feed([{ kind: "stopped", id: "main-0" }], running);
    assert.equal(state.woken.length, 1);
    await state.clock.advance(30);
    assert.equal(state.woken.length, 3);
    state.latest = ended;
    await state.clock.advance(10_000);
    assert.equal(state.woken.length, 3);
    assert.equal(state.clock.pendingTimers, 0);
  });
  test("the search is given up after a while: the relist heals the rest", async () => {
    const state = await feed([{ kind: "stopped", id: "main-0" }], running);
    await state.clock.advance(60_000);
    assert.equal(state.woken.length, 8);
    assert.equal(state.clock.pendingTimers, 0);
  });
});
