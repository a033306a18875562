/** What work takes of the processor, in microseconds; who else is at work on the machine does not count. */
export async function processorTime(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

const repeats = 5;

/**
 * The least of some runs: a collection of garbage at the wrong time, code that is not compiled yet and a machine that is
 * in a hurry only ever add to it.
 */
export async function leastProcessorTime(work: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < repeats; run++) least = Math.min(least, await processorTime(work));
  return least;
}
