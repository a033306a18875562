/** A list of CPUs that cannot be read. */
export class CpuSetError extends Error {
  override readonly name = "CpuSetError";
}

// No machine has more; a range to here is a typo.
const mostCpus = 65_536;

/** The CPUs of a list such as "0-3,8", in ascending order. */
export function parseCpuSet(text: string): number[] {
  if (text.trim() === "") return [];
  const cpus = new Set<number>();
  for (const part of text.trim().split(",")) {
    const match = /^([0-9]{1,9})(?:-([0-9]{1,9}))?$/.exec(part);
    if (match === null)
      throw new CpuSetError(`${JSON.stringify(part)} is neither a CPU number nor a range such as 0-3`);
    const first = Number(match[1]);
    const last = Number(match[2] ?? match[1]);
    if (first > last) throw new CpuSetError(`invalid range ${JSON.stringify(part)} (${first} > ${last})`);
    if (last >= mostCpus) throw new CpuSetError(`CPU ${last} is beyond the largest number supported, ${mostCpus - 1}`);
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu);
  }
  return [...cpus].sort((a, b) => a - b);
}
