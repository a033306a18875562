import type { FakeRuntime } from "../../src/beside/hollow/index.ts";
import { pods } from "../../src/beside/localapi/kinds/index.ts";
import type { ApiObject } from "../../src/beside/localapi/object.ts";
import type { Change } from "../../src/beside/localapi/store/store.ts";
import type { PodStatus } from "../../src/ground/model/index.ts";
import { namesEnd, namesStop } from "./ledgers.ts";
import type { Life } from "./machine/timeline.ts";
import type { Caller } from "./neighbours/runtime.ts";
import { type ContainerPlan, type PodPlan, ruledCode } from "./pod-maker.ts";
import type { Simulation } from "./simulation.ts";

type ContainerRecord = ReturnType<FakeRuntime["containers"]>[number];

interface Ending {
  readonly code: number;
  readonly reason: string;
  readonly by: "itself" | "the agent" | "the power";
}

interface Instance {
  readonly id: string;
  readonly startedAt: number;
  ending: Ending | undefined;
  endedAt: number | undefined;
}

interface Seen {
  readonly plan: PodPlan;
  unwantedAt: number | undefined;
  isForced: boolean;
  /** Its sandbox died, or its records were lost, at some time. */
  hasLostSandbox: boolean;
  /** A container's end has asked for all of its pod to start anew. */
  restartsAll: boolean;
  phase: string | undefined;
  readonly instances: Map<string, Instance[]>;
  readonly restartCounts: Map<string, number>;
  readonly ready: Map<string, string>;
}

/** How long after its cause something may still follow from it. */
const memoryMs = 10 * 60_000;
const mostEvents = 50_000;
/** More than this within a second of virtual time is a loop without a pause. */
const mostPerSecond = 100_000;

/** Sees everything and knows what must never happen. The first such thing is kept. */
export class Witness {
  failure: { readonly at: number; readonly what: string } | undefined;
  /** When the disk was last full, broken or slow. */
  diskTroubleAt = Number.NEGATIVE_INFINITY;
  readonly #simulation: Simulation;
  readonly #seen = new Map<string, Seen>();
  readonly #byUid = new Map<string, Seen>();
  readonly #byContainer = new Map<string, { readonly seen: Seen; readonly plan: ContainerPlan }>();
  readonly #changed = new Map<string, number>();
  readonly #sickAt = new Map<string, number>();
  readonly #unreadyAt = new Map<string, number>();
  /** When the runtime last kept silent about a command in a container: as with the kubelet, a failed probe. */
  readonly #silentAt = new Map<string, number>();
  /** Containers that the agent has asked the runtime to stop. */
  readonly #stopping = new Set<string>();
  #isPowerLost = false;
  #secondAt = 0;
  #eventsBefore = 0;

  constructor(simulation: Simulation) {
    this.#simulation = simulation;
    const { runtime, api, storage } = simulation;
    storage.onNonsense = (what) => this.fail(what);
    runtime.onCall = (caller) => this.#onCall(caller);
    runtime.onDone = (caller) => this.#onDone(caller);
    runtime.onHung = (caller) => this.#onHung(caller);
    api.onChange = (change) => this.#onChange(change);
  }

  get hasFailed(): boolean {
    return this.failure !== undefined;
  }

  fail(what: string): void {
    if (this.failure !== undefined) return;
    this.failure = { at: this.#now, what };
    this.#simulation.trace.add("FAULT", what);
  }

  /** After every event. */
  look(): void {
    const { machine } = this.#simulation;
    const [escaped] = machine.escapes;
    if (escaped !== undefined) this.fail(`not simulated: ${escaped}`);
    const { now, events } = machine.timeline;
    if (now - this.#secondAt >= 1_000) {
      this.#secondAt = now;
      this.#eventsBefore = events;
    } else if (events - this.#eventsBefore > mostPerSecond) this.fail("something runs in circles: no time passes");
    if (machine.timeline.waiting > mostEvents) this.fail(`${machine.timeline.waiting} events wait`);
  }

  isWanted(plan: PodPlan, uid: string | undefined): void {
    const seen: Seen = {
      plan,
      unwantedAt: undefined,
      isForced: false,
      hasLostSandbox: false,
      restartsAll: false,
      phase: undefined,
      instances: new Map(),
      restartCounts: new Map(),
      ready: new Map(),
    };
    this.#seen.set(plan.name, seen);
    if (uid !== undefined) this.#byUid.set(uid, seen);
    for (const container of plan.containers) this.#byContainer.set(container.name, { seen, plan: container });
  }

  isUnwanted(plan: PodPlan, isForced = false): void {
    const seen = this.#ofPlan(plan);
    if (seen === undefined) return;
    seen.unwantedAt = this.#now;
    seen.isForced ||= isForced;
  }

  isChanged(container: string): void {
    this.#changed.set(container, this.#now);
  }

  isSick(container: string): void {
    this.#sickAt.set(container, this.#now);
  }

  isUnready(container: string): void {
    this.#unreadyAt.set(container, this.#now);
  }

  lostSandboxOf(sandboxId: string): void {
    for (const { sandbox, config } of this.#records()) {
      if (sandbox.id !== sandboxId) continue;
      const found = this.#byContainer.get(config.metadata?.name ?? "");
      if (found !== undefined) found.seen.hasLostSandbox = true;
    }
  }

  lostPower(): void {
    for (const seen of this.#seen.values()) {
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

  /** Whether the agent has a reason to give up that is not its own. */
  mayEnd(_error: unknown): boolean {
    return this.#now - this.diskTroubleAt < 120_000;
  }

  get #now(): number {
    return this.#simulation.machine.timeline.now;
  }

  #ofPlan(plan: PodPlan): Seen | undefined {
    const [first] = plan.containers;
    return first === undefined ? undefined : this.#byContainer.get(first.name)?.seen;
  }

  #records(): readonly ContainerRecord[] {
    return this.#simulation.runtime.fake.containers();
  }

  // What the agent asks of the runtime

  #onCall({ operation, request, life }: Caller): void {
    const asked = request as { readonly containerId?: string; readonly podSandboxId?: string };
    const { trace } = this.#simulation;
    switch (operation) {
      case "stopContainer":
      case "removeContainer":
        this.#onStop(
          operation,
          this.#records().filter(({ id }) => id === asked.containerId),
          life,
        );
        break;
      case "stopPodSandbox":
      case "removePodSandbox":
        this.#onStop(
          operation,
          this.#records().filter(({ sandbox }) => sandbox.id === asked.podSandboxId),
          life,
        );
        break;
      case "runPodSandbox":
      case "createContainer":
        trace.add(`cri.${life?.number}`, `${operation} ${nameOf(request)}`);
        break;
      default:
    }
  }

  #onDone({ operation, request, life }: Caller): void {
    if (operation !== "startContainer") return;
    const { containerId } = request as { readonly containerId: string };
    const record = this.#records().find(({ id }) => id === containerId);
    if (record === undefined) return;
    const name = record.config.metadata?.name ?? "";
    this.#simulation.trace.add(
      `cri.${life?.number}`,
      `startContainer ${name} attempt ${record.config.metadata?.attempt}`,
    );
    const found = this.#byContainer.get(name);
    if (found === undefined) {
      this.fail(`container ${name} is started, which nobody wants`);
      return;
    }
    this.#onStart(record, found.seen, found.plan, life);
  }

  #onHung({ operation, request }: Caller): void {
    if (operation !== "execSync") return;
    const { containerId } = request as { readonly containerId: string };
    const name = this.#records().find(({ id }) => id === containerId)?.config.metadata?.name;
    // It is given up two minutes after its own time.
    if (name !== undefined) this.#silentAt.set(name, this.#now);
  }

  #onStart(record: ContainerRecord, seen: Seen, plan: ContainerPlan, life: Life | undefined): void {
    const instances = seen.instances.get(plan.name) ?? [];
    seen.instances.set(plan.name, instances);
    const before = instances.at(-1);
    const instance: Instance = { id: record.id, startedAt: this.#now, ending: undefined, endedAt: undefined };
    instances.push(instance);
    const { trace } = this.#simulation;
    record.exited.add(() => {
      const { life } = record;
      const code = life.step === "exited" ? life.exitCode : -1;
      const reason = life.step === "exited" ? life.reason : "";
      const by = this.#isPowerLost ? "the power" : this.#stopping.has(record.id) ? "the agent" : "itself";
      instance.ending = { code, reason, by };
      instance.endedAt = this.#now;
      if (plan.rule === "RestartAllContainers" && code === ruledCode) seen.restartsAll = true;
      trace.add("world", `container ${plan.name} ends with ${code} by ${by}`);
    });
    if (before !== undefined && before.ending === undefined) {
      this.fail(`container ${plan.name} is started while its instance before runs`);
    }
    if (isOver(seen.phase)) this.fail(`container ${plan.name} is started although its pod is ${seen.phase}`);
    if (before?.ending !== undefined && plan.role === "main") {
      const { code, by } = before.ending;
      // Within a moment nobody can tell one that ended from one that does not answer its probe.
      const isSure = !plan.hasLiveness || this.#now - (before.endedAt ?? 0) > 2_000;
      if (by === "itself" && isSure && !seen.restartsAll && !restartsAfter(plan, code))
        this.fail(`container ${plan.name} is started again after it ended with ${code}, policy ${plan.restartPolicy}`);
    }
    this.#checkGround(record, plan);
    if (before?.endedAt !== undefined && before.endedAt > (life?.startedAt ?? 0)) this.#expectEndNamed(record, life);
  }

  /** The status that tells of an end, and with it the ledger, may follow upon the next start. */
  #expectEndNamed({ config, sandbox }: ContainerRecord, life: Life | undefined): void {
    const [name, uid] = [config.metadata?.name ?? "", sandbox.config.metadata?.uid ?? ""];
    this.#simulation.machine.timeline.after(60_000, undefined, () => {
      const { agent } = this.#simulation;
      if (agent === undefined || agent.life !== life || namesEnd(agent.ledger(uid), name)) return;
      this.fail(`container ${name} was started again, and the ledger names no cause`);
    });
  }

  /** What a container stands on must be there when it starts. */
  #checkGround({ config, sandbox }: ContainerRecord, { name }: ContainerPlan): void {
    const { disk } = this.#simulation.machine;
    for (const { hostPath } of config.mounts) {
      if (!disk.exists(hostPath)) this.fail(`container ${name} is started without its mount ${hostPath}`);
      if (hostPath.includes("/kubernetes.io~csi/") && !disk.isMounted(hostPath))
        this.fail(`container ${name} is started, but no driver has mounted ${hostPath}`);
    }
    const cgroup = sandbox.config.linux?.cgroupParent ?? "";
    if (!disk.exists(`/sys/fs/cgroup${cgroup}`)) this.fail(`container ${name} is started without its cgroup ${cgroup}`);
  }

  #onStop(operation: string, records: readonly ContainerRecord[], life: Life | undefined): void {
    for (const record of records) {
      if (record.life.step !== "running") continue;
      const name = record.config.metadata?.name ?? "";
      const isFirst = !this.#stopping.has(record.id);
      this.#stopping.add(record.id);
      const found = this.#byContainer.get(name);
      if (found === undefined || !isFirst) continue;
      const cause = this.#causeToStop(record, found.seen, found.plan);
      this.#simulation.trace.add("cri", `${operation} stops ${name}: ${cause ?? "no cause"}`);
      if (cause === undefined) this.fail(`${operation} stops container ${name}, which runs and is wanted`);
      const { agent } = this.#simulation;
      if (operation !== "stopContainer" || agent === undefined || agent.life !== life) continue;
      if (!namesStop(agent.ledger(record.sandbox.config.metadata?.uid ?? ""), name))
        this.fail(`container ${name} is stopped, and the ledger names no cause`);
    }
  }

  #causeToStop(record: ContainerRecord, seen: Seen, plan: ContainerPlan): string | undefined {
    const { pod, containers } = seen.plan;
    const { restartPolicy, activeDeadlineSeconds } = pod.spec ?? {};
    if (seen.unwantedAt !== undefined) return "its pod is to go";
    if (record.sandbox.state !== "ready") return "its sandbox is dead";
    if (seen.hasLostSandbox) return "its pod has lost a sandbox";
    if (seen.restartsAll) return "its pod may start anew";
    if (this.#simulation.dead.has(plan.name) || this.#isRecent(this.#sickAt, plan.name)) {
      if (plan.hasLiveness || plan.hasStartup) return "it does not live";
    }
    if (this.#isRecent(this.#silentAt, plan.name) && (plan.hasLiveness || plan.hasStartup))
      return "the runtime did not answer its probe";
    if (this.#isRecent(this.#changed, plan.name)) return "its spec has changed";
    if (plan.hasPostStart) return "its hook may have failed";
    if (activeDeadlineSeconds !== undefined) return "its pod has a deadline";
    if (isOver(seen.phase)) return "its pod is over";
    const isDone = containers.every((each) => each.role !== "main" || this.#isDone(seen, each));
    if (isDone) return "the main containers are done";
    const initFailed = containers.some(
      ({ role, name }) =>
        role === "init" && (seen.instances.get(name)?.some(({ ending }) => (ending?.code ?? 0) !== 0) ?? false),
    );
    if (initFailed && restartPolicy === "Never") return "an init container has failed";
    return undefined;
  }

  #isDone(seen: Seen, plan: ContainerPlan): boolean {
    const instance = seen.instances.get(plan.name)?.at(-1);
    if (instance === undefined) return false;
    // One that is being stopped because it does not live will not come back either.
    if (instance.ending === undefined) return plan.restartPolicy === "Never" && this.#mayBeSick(plan);
    return !restartsAfter(plan, instance.ending.code);
  }

  #mayBeSick({ name, hasLiveness, hasStartup }: ContainerPlan): boolean {
    if (!hasLiveness && !hasStartup) return false;
    return this.#simulation.dead.has(name) || [this.#sickAt, this.#silentAt].some((at) => this.#isRecent(at, name));
  }

  #isRecent(moments: ReadonlyMap<string, number>, name: string): boolean {
    return this.#now - (moments.get(name) ?? Number.NEGATIVE_INFINITY) < memoryMs;
  }

  // What the agent tells the API

  #onChange({ type, resource, object, previous }: Change): void {
    if (resource !== pods.storage) return;
    const seen = this.#byUid.get(object.metadata.uid ?? "");
    if (seen === undefined) return;
    if (type === "DELETED") this.#onGone(seen);
    else this.#onStatus(seen, statusOf(object), previous === undefined ? {} : statusOf(previous));
  }

  #onGone(seen: Seen): void {
    if (seen.isForced) return;
    const names = new Set(seen.plan.containers.map(({ name }) => name));
    for (const { config, life } of this.#records()) {
      const name = config.metadata?.name ?? "";
      if (life.step === "running" && names.has(name)) {
        this.fail(`pod ${seen.plan.name} is gone from the API while its container ${name} runs`);
      }
    }
  }

  #onStatus(seen: Seen, status: PodStatus, before: PodStatus): void {
    const { name } = seen.plan;
    if (isOver(before.phase) && status.phase !== before.phase) {
      this.fail(`pod ${name} was ${before.phase} and is ${status.phase}`);
    }
    // In a new sandbox initialisation begins anew, and until it is done a pod is Pending, as upstream.
    if (before.phase === "Running" && status.phase === "Pending" && !seen.hasLostSandbox) {
      this.fail(`pod ${name} is Pending after it was Running`);
    }
    // There is room for all, and every selector fits: whoever refuses a pod here has not looked.
    if (status.message?.startsWith("Pod was rejected") === true) this.fail(`pod ${name} is refused: ${status.message}`);
    if (status.phase !== seen.phase) this.#simulation.trace.add("status", `pod ${name} is ${status.phase}`);
    seen.phase = status.phase;
    for (const each of [...(status.containerStatuses ?? []), ...(status.initContainerStatuses ?? [])]) {
      const count = seen.restartCounts.get(each.name) ?? 0;
      if (each.restartCount < count) {
        this.fail(`the restart count of ${name}/${each.name} goes back from ${count} to ${each.restartCount}`);
      }
      seen.restartCounts.set(each.name, each.restartCount);
      const wasReady = seen.ready.get(each.name);
      if (each.ready) seen.ready.set(each.name, each.containerID ?? "");
      else {
        seen.ready.delete(each.name);
        if (wasReady !== undefined) this.#onUnready(seen, each.name, wasReady);
      }
    }
  }

  #onUnready(seen: Seen, name: string, id: string): void {
    const plan = this.#byContainer.get(name)?.plan;
    if (plan === undefined || seen.unwantedAt !== undefined || plan.role === "init") return;
    const instance = seen.instances.get(name)?.find((each) => id.endsWith(each.id));
    const cause =
      instance === undefined || instance.ending !== undefined
        ? "it has ended"
        : [this.#unreadyAt, this.#sickAt, this.#silentAt].some((moments) => this.#isRecent(moments, name))
          ? "its probe fails"
          : this.#simulation.unready.has(name) || this.#simulation.dead.has(name)
            ? "its probe fails"
            : this.#causeToStop({ sandbox: { state: "ready" } } as ContainerRecord, seen, plan);
    if (cause === undefined) this.fail(`container ${name} was ready and is not, although it runs and answers`);
  }
}

function statusOf(object: ApiObject): PodStatus {
  return (object["status"] ?? {}) as PodStatus;
}

function restartsAfter({ restartPolicy, rule }: ContainerPlan, code: number): boolean {
  if (rule !== undefined && code === ruledCode) return true;
  return restartPolicy === "Always" || (restartPolicy === "OnFailure" && code !== 0);
}

export function isOver(phase: string | undefined): boolean {
  return phase === "Succeeded" || phase === "Failed";
}

function nameOf(request: unknown): string {
  const { config } = request as { readonly config?: { readonly metadata?: { readonly name?: string } } };
  return config?.metadata?.name ?? "";
}
