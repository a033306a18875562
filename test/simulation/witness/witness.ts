import { pods as podKind } from "../../../src/beside/localapi/kinds/index.ts";
import type { Life } from "../machine/timeline.ts";
import type { Caller } from "../neighbours/runtime.ts";
import type { PodPlan } from "../pod-maker.ts";
import type { Simulation } from "../simulation.ts";
import { Ailments } from "./ailments.ts";
import { heard, shortagesOf } from "./evictions.ts";
import { onReturn } from "./ground.ts";
import type { Scene } from "./scene.ts";
import { type ContainerRecord, nameOf, SeenPods } from "./seen-pods.ts";
import type { Shortages } from "./shortages.ts";
import { onStart } from "./starts.ts";
import { Statuses } from "./statuses.ts";
import { Stops } from "./stops.ts";

const mostEvents = 50_000;
/** More than this within a second of virtual time is a loop without a pause. */
const mostPerSecond = 100_000;

/** Sees everything and has it judged by the rules beside it. The first thing that must never happen is kept. */
export class Witness {
  failure: { readonly at: number; readonly what: string } | undefined;
  /** When the disk was last full, broken or slow. */
  diskTroubleAt = Number.NEGATIVE_INFINITY;
  readonly ailments: Ailments;
  readonly shortages: Shortages;
  readonly #simulation: Simulation;
  readonly #scene: Scene;
  readonly #pods = new SeenPods();
  readonly #stops: Stops;
  #isPowerLost = false;
  #secondAt = 0;
  #eventsBefore = 0;

  constructor(simulation: Simulation) {
    const { runtime, api, plugins, claims, machine, dead } = simulation;
    this.#simulation = simulation;
    this.ailments = new Ailments(
      () => machine.timeline.now,
      (container) => dead.has(container),
    );
    this.#scene = {
      ...{ simulation, pods: this.#pods, ailments: this.ailments },
      fail: (what) => this.fail(what),
    };
    this.shortages = shortagesOf(this.#scene);
    this.#stops = new Stops(this.#scene);
    const statuses = new Statuses(this.#scene, this.shortages);
    for (const plugin of plugins) plugin.onNonsense = (what) => this.fail(what);
    claims.onReturn = (claim) => onReturn(this.#scene, claim);
    runtime.onCall = (caller) => this.#onCall(caller);
    runtime.onDone = (caller) => this.#onDone(caller);
    runtime.onHung = (caller) => this.#onHung(caller);
    api.onChange = (change) => statuses.onChange(change);
  }

  get hasFailed(): boolean {
    return this.failure !== undefined;
  }

  fail(what: string): void {
    if (this.failure !== undefined) return;
    const { machine, trace } = this.#simulation;
    this.failure = { at: machine.timeline.now, what };
    trace.add("FAULT", what);
  }

  /** After every event. */
  look(): void {
    const { machine } = this.#simulation;
    const [escaped] = machine.escapes;
    if (escaped !== undefined) this.fail(`not simulated: ${escaped}`);
    const { now, events, waiting } = machine.timeline;
    if (now - this.#secondAt >= 1_000) {
      this.#secondAt = now;
      this.#eventsBefore = events;
    } else if (events - this.#eventsBefore > mostPerSecond) this.fail("something runs in circles: no time passes");
    if (waiting > mostEvents) this.fail(`${waiting} events wait`);
  }

  // What people and the machine do

  isWanted(plan: PodPlan, uid: string | undefined): void {
    this.#pods.add(plan, uid);
  }

  isUnwanted(plan: PodPlan, isForced = false): void {
    const seen = this.#pods.ofPlan(plan);
    if (seen === undefined) return;
    seen.unwantedAt = this.#simulation.machine.timeline.now;
    seen.isForced ||= isForced;
  }

  isResized(plan: PodPlan): void {
    const seen = this.#pods.ofPlan(plan);
    if (seen !== undefined) seen.isResized = true;
  }

  lostSandboxOf(sandboxId: string): void {
    for (const record of this.#recordsOf(sandboxId)) {
      const found = this.#pods.withContainer(nameOf(record));
      if (found !== undefined) found.seen.hasLostSandbox = true;
    }
  }

  lostPower(): void {
    for (const seen of this.#pods.all()) {
      seen.hasLostSandbox = true;
      // What was last said of a running pod is not waited for to reach the disk.
      seen.restartCounts.clear();
    }
  }

  /** While `act` runs, processes end because the machine does. */
  withoutPower(act: () => void): void {
    this.#isPowerLost = true;
    act();
    this.#isPowerLost = false;
  }

  // What others ask

  /** Pods that are wanted, or of which something is left in the API or the runtime. */
  present(): readonly PodPlan[] {
    const { api } = this.#simulation;
    const left = new Set(this.#records().map((each) => this.#pods.withContainer(nameOf(each))?.seen));
    return [...this.#pods.withUids()].flatMap(([uid, seen]) => {
      const isThere = api.get(podKind, `default/${seen.plan.name}`)?.metadata.uid === uid;
      return isThere || left.has(seen) ? [seen.plan] : [];
    });
  }

  /** Pods that the machine had no room for do not come back by themselves. */
  isTakenOff({ name }: PodPlan): boolean {
    const seen = this.#pods.named(name);
    return seen !== undefined && (seen.isRefused || seen.evictedIn !== undefined);
  }

  /** Whether the agent has a reason to give up that is not its own. */
  mayEnd(_error: unknown): boolean {
    return this.#simulation.machine.timeline.now - this.diskTroubleAt < 120_000;
  }

  // What the agent does

  heard(message: string, fields: object | undefined, life: Life): void {
    heard(this.#scene, this.shortages, message, fields, life);
  }

  #onCall({ operation, request, life }: Caller): void {
    const asked = request as { readonly containerId?: string; readonly podSandboxId?: string };
    switch (operation) {
      case "stopContainer":
      case "removeContainer":
        this.#stops.onCall(operation, this.#recordsWith(asked.containerId), life);
        break;
      case "stopPodSandbox":
      case "removePodSandbox":
        this.#stops.onCall(operation, this.#recordsOf(asked.podSandboxId), life);
        break;
      case "runPodSandbox":
      case "createContainer":
        this.#simulation.trace.add(`cri.${life?.number}`, `${operation} ${nameIn(request)}`);
        break;
      default:
    }
  }

  #onDone({ operation, request, life }: Caller): void {
    if (operation !== "startContainer") return;
    const [record] = this.#recordsWith((request as { readonly containerId: string }).containerId);
    if (record !== undefined) onStart(this.#scene, record, life, (id) => this.#endedBy(id));
  }

  #onHung({ operation, request }: Caller): void {
    if (operation !== "execSync") return;
    const [record] = this.#recordsWith((request as { readonly containerId: string }).containerId);
    // It is given up two minutes after its own time.
    if (record !== undefined) this.ailments.isSilent(nameOf(record));
  }

  #endedBy(containerId: string): "itself" | "the agent" | "the power" {
    if (this.#isPowerLost) return "the power";
    return this.#stops.wasAsked(containerId) ? "the agent" : "itself";
  }

  #records(): readonly ContainerRecord[] {
    return this.#simulation.runtime.fake.containers();
  }

  #recordsWith(containerId: string | undefined): readonly ContainerRecord[] {
    return this.#records().filter(({ id }) => id === containerId);
  }

  #recordsOf(sandboxId: string | undefined): readonly ContainerRecord[] {
    return this.#records().filter(({ sandbox }) => sandbox.id === sandboxId);
  }
}

function nameIn(request: unknown): string {
  const { config } = request as { readonly config?: { readonly metadata?: { readonly name?: string } } };
  return config?.metadata?.name ?? "";
}
