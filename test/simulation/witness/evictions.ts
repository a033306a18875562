import type { Life } from "../machine/timeline.ts";
import { areMainsDone } from "./causes.ts";
import type { Scene } from "./scene.ts";
import { isOver, nameOf, type Seen } from "./seen-pods.ts";
import { type Running, Shortages } from "./shortages.ts";

/** Sees which pods there are to take off, for those who judge what the agent does about a shortage. */
export function shortagesOf(scene: Scene): Shortages {
  const { pressure, machine, runtime } = scene.simulation;
  const leaves = (container: string): boolean => scene.pods.withContainer(container)?.seen.unwantedAt !== undefined;
  const shortages = new Shortages({
    pressure,
    now: () => machine.timeline.now,
    isDiskFull: () => machine.disk.isFull,
    fail: scene.fail,
    runningIn: (life) => runningIn(scene, life),
    isAnyLeaving: () => runtime.fake.containers().some((each) => each.life.step === "running" && leaves(nameOf(each))),
  });
  pressure.onLook = () => shortages.looked(machine.life);
  return shortages;
}

/** The agent says what it does; of this only whom it takes off counts. */
export function heard(
  { pods, fail }: Scene,
  shortages: Shortages,
  message: string,
  fields: object | undefined,
  life: Life,
): void {
  if (message !== "Evicting a pod because the node is short of resources") return;
  const { pod, signal } = fields as { readonly pod: string; readonly signal: string };
  const seen = pods.withUid(/\((.*)\)$/.exec(pod)?.[1] ?? "");
  if (seen === undefined) {
    fail(`pod ${pod}, which comes from a file, is taken off`);
    return;
  }
  seen.evictedIn = life;
  if (!seen.isResized) shortages.chosen(seen.plan, runningOf(seen), signal, life);
}

/** Pods that this life of the agent has started something of, and that have no cause to end. */
function runningIn({ simulation, pods, ailments }: Scene, life: Life): readonly Running[] {
  return [...pods.all()].flatMap((seen) => {
    const { plan, instances } = seen;
    const mayEnd =
      seen.unwantedAt !== undefined ||
      seen.evictedIn === life ||
      seen.isResized ||
      isOver(seen.phase) ||
      seen.isRefused;
    if (mayEnd || plan.pod.spec?.activeDeadlineSeconds !== undefined) return [];
    const all = [...instances.values()].flat();
    const isOfThisLife = all.some(({ ending, startedIn }) => ending === undefined && startedIn === life);
    if (!isOfThisLife || areMainsDone(seen, ailments)) return [];
    const since = Math.max(...all.map((each) => each.endedAt ?? each.startedAt));
    return [{ plan, steadyMs: simulation.machine.timeline.now - since, containers: runningOf(seen) }];
  });
}

function runningOf({ instances }: Seen): readonly string[] {
  return [...instances].flatMap(([name, all]) => (all.some(({ ending }) => ending === undefined) ? [name] : []));
}
