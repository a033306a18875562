import { pods as podKind } from "../../../src/beside/localapi/kinds/index.ts";
import type { ApiObject } from "../../../src/beside/localapi/object.ts";
import type { Change } from "../../../src/beside/localapi/store/store.ts";
import type { PodStatus } from "../../../src/ground/model/index.ts";
import { causeToStop } from "./causes.ts";
import type { Scene } from "./scene.ts";
import { isOver, nameOf, type Seen } from "./seen-pods.ts";
import type { Shortages } from "./shortages.ts";

/** What the agent tells the API: phases, restart counts and readiness do not go back, and no pod goes too soon. */
export class Statuses {
  readonly #scene: Scene;
  readonly #shortages: Shortages;

  constructor(scene: Scene, shortages: Shortages) {
    this.#scene = scene;
    this.#shortages = shortages;
  }

  onChange({ type, resource, object, previous }: Change): void {
    if (resource !== podKind.storage) return;
    const seen = this.#scene.pods.withUid(object.metadata.uid ?? "");
    if (seen === undefined) return;
    if (type === "DELETED") this.#onGone(seen);
    else this.#onStatus(seen, statusOf(object), previous === undefined ? {} : statusOf(previous));
  }

  #onGone(seen: Seen): void {
    const { simulation, fail } = this.#scene;
    simulation.forgetClaims(seen.plan);
    if (seen.isForced) return;
    const names = new Set(seen.plan.containers.map(({ name }) => name));
    for (const record of simulation.runtime.fake.containers()) {
      const name = nameOf(record);
      if (record.life.step === "running" && names.has(name)) {
        fail(`pod ${seen.plan.name} is gone from the API while its container ${name} runs`);
      }
    }
  }

  #onStatus(seen: Seen, status: PodStatus, before: PodStatus): void {
    const { simulation, fail } = this.#scene;
    const { name } = seen.plan;
    if (isOver(before.phase) && status.phase !== before.phase) {
      fail(`pod ${name} was ${before.phase} and is ${status.phase}`);
    }
    // In a new sandbox initialisation begins anew, and until it is done a pod is Pending, as upstream.
    if (before.phase === "Running" && status.phase === "Pending" && !seen.hasLostSandbox) {
      fail(`pod ${name} is Pending after it was Running`);
    }
    // There is room for all, and every selector fits: whoever refuses a pod here has not looked.
    if (status.message?.startsWith("Pod was rejected") === true) this.#onRefused(seen, status.message);
    if (status.phase !== seen.phase) simulation.trace.add("status", `pod ${name} is ${status.phase}`);
    seen.phase = status.phase;
    for (const each of status.containerStatuses ?? []) this.#onContainer(seen, each);
    for (const each of status.initContainerStatuses ?? []) this.#onContainer(seen, each);
  }

  #onContainer(seen: Seen, status: NonNullable<PodStatus["containerStatuses"]>[number]): void {
    const { name, restartCount, ready, containerID = "" } = status;
    const count = seen.restartCounts.get(name) ?? 0;
    if (restartCount < count) {
      this.#scene.fail(`the restart count of ${seen.plan.name}/${name} goes back from ${count} to ${restartCount}`);
    }
    seen.restartCounts.set(name, restartCount);
    const wasReady = seen.ready.get(name);
    if (ready) {
      seen.ready.set(name, containerID);
      return;
    }
    seen.ready.delete(name);
    if (wasReady !== undefined) this.#onUnready(seen, name, wasReady);
  }

  #onRefused(seen: Seen, message: string): void {
    const conditions = /The node had condition: \[([^\]]*)\]/.exec(message)?.[1];
    if (conditions === undefined) this.#scene.fail(`pod ${seen.plan.name} is refused: ${message}`);
    else if (!seen.isRefused) {
      seen.isRefused = true;
      this.#shortages.refused(seen.plan, conditions);
    }
  }

  #onUnready(seen: Seen, name: string, id: string): void {
    const { simulation, pods, ailments, fail } = this.#scene;
    const found = pods.withContainer(name);
    if (found === undefined || seen.unwantedAt !== undefined || found.plan.role === "init") return;
    const instance = seen.instances.get(name)?.find((each) => id.endsWith(each.id));
    const hasEnded = instance === undefined || instance.ending !== undefined;
    const failsProbe =
      ailments.wasUnready(name) || ailments.wasSick(name) || ailments.wasSilent(name) || simulation.unready.has(name);
    if (hasEnded || failsProbe || causeToStop("ready", { seen, plan: found.plan }, undefined, ailments) !== undefined)
      return;
    fail(`container ${name} was ready and is not, although it runs and answers`);
  }
}

function statusOf(object: ApiObject): PodStatus {
  return (object["status"] ?? {}) as PodStatus;
}
