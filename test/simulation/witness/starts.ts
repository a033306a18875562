import type { Life } from "../machine/timeline.ts";
import { ruledCode } from "../pod-maker.ts";
import { restartsAfter } from "./causes.ts";
import { checkGround } from "./ground.ts";
import { namesEnd } from "./ledgers.ts";
import type { Scene } from "./scene.ts";
import { type ContainerRecord, type Instance, isOver, nameOf, type SeenContainer } from "./seen-pods.ts";

/** Who ends a container that ends now. */
export type EndedBy = (containerId: string) => "itself" | "the agent" | "the power";

/** A container has started: was it wanted, was its instance before at its end, and does it stand on what it needs? */
export function onStart(scene: Scene, record: ContainerRecord, life: Life | undefined, endedBy: EndedBy): void {
  const { simulation, pods, fail } = scene;
  const name = nameOf(record);
  simulation.trace.add(`cri.${life?.number}`, `startContainer ${name} attempt ${record.config.metadata?.attempt}`);
  const found = pods.withContainer(name);
  if (found === undefined) {
    fail(`container ${name} is started, which nobody wants`);
    return;
  }
  const { seen, plan } = found;
  const instances = seen.instances.get(plan.name) ?? [];
  seen.instances.set(plan.name, instances);
  const before = instances.at(-1);
  instances.push(newInstance(scene, record, found, life, endedBy));
  if (before !== undefined && before.ending === undefined) {
    fail(`container ${plan.name} is started while its instance before runs`);
  }
  if (isOver(seen.phase)) fail(`container ${plan.name} is started although its pod is ${seen.phase}`);
  if (before !== undefined) checkRestart(scene, found, before);
  checkGround(scene, record, found);
  if (before?.endedAt !== undefined && before.endedAt > (life?.startedAt ?? 0)) expectEndNamed(scene, record, life);
}

function newInstance(
  { simulation }: Scene,
  record: ContainerRecord,
  { seen, plan }: SeenContainer,
  life: Life | undefined,
  endedBy: EndedBy,
): Instance {
  const { trace, machine } = simulation;
  const instance: Instance = {
    id: record.id,
    startedAt: machine.timeline.now,
    startedIn: life,
    ending: undefined,
    endedAt: undefined,
  };
  record.exited.add(() => {
    const { life } = record;
    const code = life.step === "exited" ? life.exitCode : -1;
    const reason = life.step === "exited" ? life.reason : "";
    const by = endedBy(record.id);
    instance.ending = { code, reason, by };
    instance.endedAt = machine.timeline.now;
    if (plan.rule === "RestartAllContainers" && code === ruledCode) seen.restartsAll = true;
    trace.add("world", `container ${plan.name} ends with ${code} by ${by}`);
  });
  return instance;
}

function checkRestart({ simulation, fail }: Scene, { seen, plan }: SeenContainer, before: Instance): void {
  if (before.ending === undefined || plan.role !== "main") return;
  const { code, by } = before.ending;
  // Within a moment nobody can tell one that ended from one that does not answer its probe.
  const isSure = !plan.hasLiveness || simulation.machine.timeline.now - (before.endedAt ?? 0) > 2_000;
  if (by === "itself" && isSure && !seen.restartsAll && !restartsAfter(plan, code))
    fail(`container ${plan.name} is started again after it ended with ${code}, policy ${plan.restartPolicy}`);
}

/** The status that tells of an end, and with it the ledger, may follow upon the next start. */
function expectEndNamed({ simulation, fail }: Scene, record: ContainerRecord, life: Life | undefined): void {
  const [name, uid] = [nameOf(record), record.sandbox.config.metadata?.uid ?? ""];
  simulation.machine.timeline.after(60_000, undefined, () => {
    const { agent } = simulation;
    if (agent === undefined || agent.life !== life || namesEnd(agent.ledger(uid), name)) return;
    fail(`container ${name} was started again, and the ledger names no cause`);
  });
}
