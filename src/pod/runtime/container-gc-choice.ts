import { newerFirst } from "../../ground/model/index.ts";

/** A container that does not run, as the garbage collection sees it. */
export interface DeadContainer {
  readonly id: string;
  readonly podUid: string;
  readonly name: string;
  readonly attempt: number;
  readonly createdAt: number;
  /** It was made, but never ran. */
  readonly isUnstarted: boolean;
}

export interface ContainerLimits {
  /** Dead instances kept per container of a pod; negative: all. */
  readonly maxPerContainer: number;
  /** Dead containers kept on the node; negative: any number. */
  readonly maxInAll: number;
}

/**
 * Which dead containers go: all of pods that are over, then whatever exceeds the limits, the oldest first. One that never
 * ran tells nothing of how its container ended, and takes no place of one that does; the newest is about to be started.
 */
export function chooseContainers<Dead extends DeadContainer>(
  dead: readonly Dead[],
  limits: ContainerLimits,
  isPodOver: (podUid: string) => boolean,
): readonly Dead[] {
  const { maxPerContainer, maxInAll } = limits;
  const over = dead.filter(({ podUid }) => isPodOver(podUid));
  const groups = groupsOf(dead.filter(({ podUid }) => !isPodOver(podUid)));
  const upcoming = groups.flatMap(([newest]) =>
    newest?.isUnstarted === true && maxPerContainer !== 0 ? [newest] : [],
  );
  let kept: readonly (readonly Dead[])[] = groups.map((group) =>
    endedFirst(group.filter((one) => !upcoming.includes(one))),
  );
  if (maxPerContainer >= 0) kept = kept.map((group) => group.slice(0, maxPerContainer));
  if (maxInAll >= 0 && kept.flat().length > maxInAll) {
    const filled = kept.filter((group) => group.length > 0);
    const share = Math.max(1, Math.floor(maxInAll / filled.length));
    const shared = filled.map((group) => group.slice(0, share));
    // Attempts of different containers say nothing of their ages.
    kept = [
      shared
        .flat()
        .sort((a, b) => b.createdAt - a.createdAt)
        .slice(0, maxInAll),
    ];
  }
  const staying = new Set([...upcoming, ...kept.flat()]);
  return [...over, ...dead.filter((container) => !over.includes(container) && !staying.has(container))];
}

/** Which ended instances a pod need not keep, now that one more has ended. */
export function chooseEnded<Ended extends Pick<DeadContainer, "name" | "attempt" | "createdAt">>(
  ended: readonly Ended[],
  keepPerContainer: number,
): readonly Ended[] {
  const names = new Set(ended.map(({ name }) => name));
  return [...names].flatMap((name) =>
    ended
      .filter((container) => container.name === name)
      .sort(newerFirst)
      .slice(keepPerContainer),
  );
}

export interface KnownSandbox {
  readonly id: string;
  readonly podUid: string;
  readonly attempt: number;
  readonly createdAt: number;
  /** Ready, or some container still belongs to it. */
  readonly isNeeded: boolean;
}

/** Which sandboxes go: those nobody needs, except the newest of a pod that is not over. */
export function chooseSandboxes<Known extends KnownSandbox>(
  sandboxes: readonly Known[],
  isPodOver: (podUid: string) => boolean,
): readonly Known[] {
  const pods = new Set(sandboxes.map(({ podUid }) => podUid));
  return [...pods].flatMap((podUid) => {
    const ofPod = sandboxes.filter((sandbox) => sandbox.podUid === podUid).sort(newerFirst);
    return (isPodOver(podUid) ? ofPod : ofPod.slice(1)).filter(({ isNeeded }) => !isNeeded);
  });
}

function endedFirst<Dead extends DeadContainer>(newestFirst: readonly Dead[]): readonly Dead[] {
  return [...newestFirst.filter((one) => !one.isUnstarted), ...newestFirst.filter((one) => one.isUnstarted)];
}

/** One group per container of a pod, each newest first. */
function groupsOf<Dead extends DeadContainer>(dead: readonly Dead[]): readonly (readonly Dead[])[] {
  const groups = new Map<string, Dead[]>();
  for (const container of dead) {
    const key = `${container.podUid}/${container.name}`;
    const group = groups.get(key) ?? [];
    group.push(container);
    groups.set(key, group);
  }
  return [...groups.values()].map((group) => group.sort(newerFirst));
}
