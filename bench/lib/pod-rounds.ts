import { systemClock } from "../../src/ground/base/index.ts";
import { TestAgent } from "../../test/support/agent.ts";
import { startContainerd } from "../../test/support/containerd.ts";
import { isGone, isRunning, PodMoments } from "../../test/support/pod-moments.ts";
import { RawRuntime, untilTold } from "../../test/support/raw-runtime.ts";

export interface PodTimes {
  readonly start: number[];
  readonly rawStart: number[];
  readonly stop: number[];
  readonly rawStop: number[];
}

/** The same pod started and stopped through the agent and by the bare CRI calls, in turns; milliseconds. */
export async function measurePods(rounds: number): Promise<PodTimes> {
  await using containerd = await startContainerd();
  await using agent = await TestAgent.start(containerd);
  await using moments = new PodMoments(agent);
  // The agent would take pods it does not know for orphans, so the bare calls go to a runtime of their own.
  await using otherContainerd = await startContainerd();
  using raw = new RawRuntime(otherContainerd);
  const times: PodTimes = { start: [], rawStart: [], stop: [], rawStop: [] };
  // The first round warms caches of both sides and does not count.
  for (let round = -1; round < rounds; round++) {
    const name = `pod-${round + 1}`;
    const began = systemClock.monotonic();
    await agent.apply(name, {
      terminationGracePeriodSeconds: 5,
      containers: [{ name: "main", image: containerd.images.busybox, command: [...untilTold] }],
    });
    const running = await moments.when(name, isRunning);
    const removed = systemClock.monotonic();
    await agent.remove(name);
    const gone = await moments.when(name, isGone);
    const rawBegan = systemClock.monotonic();
    const pod = await raw.start(`raw-${round + 1}`, untilTold);
    const rawRunning = systemClock.monotonic();
    await raw.stop(pod, 5);
    const rawGone = systemClock.monotonic();
    if (round < 0) continue;
    times.start.push(running - began);
    times.stop.push(gone - removed);
    times.rawStart.push(rawRunning - rawBegan);
    times.rawStop.push(rawGone - rawRunning);
  }
  return times;
}
