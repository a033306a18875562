import { hasCode } from "../../ground/base/index.ts";

/**
 * The kills of every pod's containers. One pod that can't be asked keeps nobody from hearing of the others': what went
 * wrong is thrown when all are asked. A pod whose cgroup is gone has nothing left to be killed.
 */
export function* killsByPod<Pod>(
  pods: Iterable<Pod>,
  killsOf: (pod: Pod) => Iterable<readonly [string, number]>,
): Generator<readonly [string, number]> {
  const problems: unknown[] = [];
  for (const pod of pods) {
    try {
      yield* killsOf(pod);
    } catch (error) {
      if (!hasCode(error, "ENOENT") && !hasCode(error, "ENODEV")) problems.push(error);
    }
  }
  if (problems.length > 0) throw problems[0];
}
