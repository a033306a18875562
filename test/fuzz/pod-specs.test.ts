import assert from "node:assert/strict";
import { amountsOf, type IdentifiedPod } from "../../src/ground/model/index.ts";
import {
  appArmorHandler,
  hostPortsHandler,
  nodeFitHandler,
  osHandler,
  sysctlHandler,
} from "../../src/pod/registry/index.ts";
import { enginePod, TestEngine } from "../support/test-engine.ts";
import { fuzzTest } from "./fuzzing.ts";
import { oddPod } from "./odd-pods.ts";

const podsAtOnce = 8;

/** What a person needs to see why a pod did not leave. */
function leftBehind({ engine, events }: TestEngine, wanted: readonly IdentifiedPod[]): string {
  const pods = [...engine.workers.uids()].map((uid) => {
    const { step, ...rest } = engine.workers.stateOf(uid) ?? { step: "no state" };
    const pod = wanted.find(({ metadata }) => metadata.uid === uid);
    return `${uid}: ${step} ${JSON.stringify(rest)}\n${JSON.stringify(pod)}`;
  });
  const last = events.slice(-10).map((event) => JSON.stringify(event));
  return `pods that do not leave:\n${pods.join("\n")}\nlast events:\n${last.join("\n")}`.slice(0, 10_000);
}

fuzzTest("odd pods end as their own failures; a good pod beside them starts, and all can be deleted", async (fuzz) => {
  const { random } = fuzz;
  const node = { metadata: { name: "n1", labels: { zone: "a", number: "12" } }, spec: {}, status: {} };
  await using engine = await TestEngine.start({
    source: "api",
    handlers: [
      sysctlHandler({ allowedUnsafe: [], kernelVersion: "6.1.0", normalName: (name) => name }),
      nodeFitHandler({
        node: () => ({ node, isConfirmed: true }),
        allocatable: () => amountsOf({ cpu: "4", memory: "8Gi", pods: "110" }),
      }),
      hostPortsHandler,
      appArmorHandler(false),
      osHandler,
    ],
  });
  const idleTimers = engine.clock.pendingTimers;
  for (let round = 0; fuzz.goesOn(); round++) {
    const names = Array.from({ length: podsAtOnce }, (_, index) => `odd-${round}-${index}`);
    const good = `good-${round}`;
    const odd = names.map((name) => oddPod(random, name));
    await engine.want(...odd, enginePod(good));
    await engine.until(`${good} runs`, () => engine.phase(good) === "Running");
    for (let step = 0; step < 5; step++) {
      const running = engine.runtime.containers().filter(({ life }) => life.step === "running");
      if (running.length > 0) engine.runtime.exit(random.pick(running).id, random.below(3));
      await engine.advance(random.pick([10, 1_000, 30_000]));
    }
    if (random.below(3) === 0) await engine.restart();
    await engine.until(`${good} still runs`, () => engine.phase(good) === "Running");
    await engine.drop(...names, good);
    const left = (): number => [...engine.engine.workers.uids()].length;
    await engine
      .until("all are gone", () => left() === 0, 24 * 3_600_000, 60_000)
      .catch((error: unknown) => {
        throw new Error(leftBehind(engine, odd), { cause: error });
      });
    assert.deepEqual(engine.running(), []);
    // What a pod waited for is given up with it, within the longest that a call to the runtime may take.
    await engine.until("no timer is left", () => engine.clock.pendingTimers <= idleTimers, 600_000, 10_000);
    engine.events.length = 0;
  }
});
