import assert from "node:assert/strict";
import type { FakeRuntime } from "../../src/beside/hollow/index.ts";
import { CriError } from "../../src/connections/cri/index.ts";
import { problemWith } from "../../src/connections/cri/sanity.ts";
import { enginePod, TestEngine } from "../support/test-engine.ts";
import { type FuzzRandom, fuzzTest } from "./fuzzing.ts";

type Runtime = FakeRuntime["runtime"];

fuzzTest("a runtime that answers nonsense harms nothing that outlasts it", async ({ random, goesOn }) => {
  const oddness = { chance: 0 };
  await using engine = await TestEngine.start({
    source: "api",
    answers: (runtime) => oddlyAnswering(runtime, random, oddness),
  });
  const idleTimers = engine.clock.pendingTimers;
  for (let round = 0; goesOn(); round++) {
    const uids = [`a${round}`, `b${round}`];
    oddness.chance = random.pick([0.02, 0.2, 0.9]);
    await engine.want(...uids.map((uid) => enginePod(uid, { terminationGracePeriodSeconds: 1 })));
    for (let step = random.below(20); step > 0; step--) {
      await engine.advance(random.pick([10, 500, 10_000]));
      if (random.chance(0.1)) await engine.restart();
    }
    oddness.chance = 0;
    // A relist is the truth, and comes by itself.
    await engine.until("both pods run", () => uids.every((uid) => isRunning(engine, uid)), 3_600_000, 1_000);
    await engine.drop(...uids);
    await engine.until("nothing is left", () => engine.running().length === 0, 3_600_000, 1_000);
    await engine.until("no worker is left", () => [...engine.engine.workers.uids()].length === 0, 3_600_000, 1_000);
    // What a pod waited for is given up with it, within the longest that a call to the runtime may take.
    await engine.until("no timer is left", () => engine.clock.pendingTimers <= idleTimers, 600_000, 10_000);
    engine.events.length = 0;
  }
  assert.deepEqual(engine.running(), []);
});

function isRunning(engine: TestEngine, uid: string): boolean {
  return engine.phase(uid) === "Running" && engine.running().includes(`${uid}/main`);
}

/** The runtime with some answers changed, as far as they can pass the checks of the client. */
function oddlyAnswering(runtime: Runtime, random: FuzzRandom, oddness: { chance: number }): Runtime {
  return new Proxy(runtime, {
    get(target, operation: keyof Runtime) {
      const method = target[operation].bind(target) as (...words: unknown[]) => unknown;
      return (...words: unknown[]) => {
        const answer = method(...words);
        if (!(answer instanceof Promise)) return answer;
        return answer.then((response: unknown) => {
          if (!random.chance(oddness.chance)) return response;
          const spoilt = structuredClone(response);
          for (let left = random.below(4); left >= 0; left--) spoilSomewhere(spoilt, random);
          const problem = problemWith(operation, spoilt);
          if (problem !== undefined) throw new CriError("Internal", operation, problem);
          return spoilt;
        });
      };
    },
  });
}

/** Changes a value for another of the same type: the wire format allows no other. */
function spoilSomewhere(tree: unknown, random: FuzzRandom): void {
  if (typeof tree !== "object" || tree === null) return;
  const branch = tree as Record<string, unknown>;
  const keys = Object.keys(branch);
  if (keys.length === 0) return;
  const key = random.pick(keys);
  const value = branch[key];
  if (typeof value === "object" && value !== null && random.chance(0.8)) spoilSomewhere(value, random);
  else branch[key] = another(value, random);
}

function another(value: unknown, random: FuzzRandom): unknown {
  if (typeof value === "string") {
    return random.pick(["", "{", "\u0000", "../..", "__proto__", "-1", random.text(20), "x".repeat(200_000), value]);
  }
  if (typeof value === "bigint") return random.pick([0n, -1n, 1n, 2n ** 63n - 1n, -(2n ** 63n)]);
  if (typeof value === "number") return random.pick([0, -1, 1, 2, 3, 99, 2 ** 31 - 1]);
  if (typeof value === "boolean") return !value;
  if (Array.isArray(value)) return random.pick([[], [...value, ...value]]);
  if (value instanceof Uint8Array) return random.bytes(random.below(10_000));
  return undefined;
}
