import type { DevicePluginOptions, PreferenceQuery } from "../../src/connections/plugins/index.ts";
import { ContainerAllocateResponse } from "../../src/connections/plugins/index.ts";
import { silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import { type IdentifiedPod, type PodUid, uidOf } from "../../src/ground/model/index.ts";
import { deviceHandler } from "../../src/pod/registry/index.ts";
import { DeviceAdmission, DeviceManager, DeviceProvider } from "../../src/pod/resources/index.ts";
import { Alignment, type AlignmentSettings } from "../../src/pod/resources/topology/alignment.ts";
import { AllocationError } from "../../src/pod/resources/topology/hints.ts";
import { NumaNodes } from "../../src/pod/resources/topology/numa-nodes.ts";
import type { FakeClock } from "./fake-clock.ts";

/** A file of which a write is under way until `land`; whoever dies meanwhile leaves the old text or the new one. */
export class SlowFile {
  text: string | undefined;
  failure: Error | undefined;
  #writing: { readonly text: string; readonly done: () => void } | undefined;

  async read(): Promise<string | undefined> {
    return this.text;
  }

  async save(_path: string, text: string): Promise<void> {
    if (this.failure !== undefined) throw this.failure;
    await new Promise<void>((done) => {
      this.#writing = { text, done };
    });
  }

  /** What is being written. */
  get coming(): string | undefined {
    return this.#writing?.text;
  }

  get isWriting(): boolean {
    return this.#writing !== undefined;
  }

  land(): void {
    const writing = this.#writing;
    if (writing === undefined) return;
    this.#writing = undefined;
    this.text = writing.text;
    writing.done();
  }

  /** The process has died; the write may have come through. */
  die(cameThrough: boolean): void {
    const writing = this.#writing;
    this.#writing = undefined;
    if (cameThrough && writing !== undefined) this.text = writing.text;
    // Nobody is left to go on with it; whoever waits for the dead to end must not wait for ever.
    writing?.done();
  }
}

/** A plugin that behaves as it is told. */
export class ScriptedPlugin {
  options: DevicePluginOptions = { preStartRequired: false, givesPreferences: false };
  readonly asked: string[] = [];
  /** What it answers; a promise that never settles is a plugin that hangs. */
  answer: (ids: readonly string[]) => Promise<Uint8Array> = async (ids) => allocated({ IDS: ids.join(",") });
  prefers: (query: PreferenceQuery) => Promise<readonly string[]> = async () => [];
  preStarted: (ids: readonly string[]) => Promise<void> = async () => {};

  readonly client = {
    allocate: (ids: readonly string[], signal: AbortSignal) => {
      this.asked.push(`allocate ${ids.join(",")}`);
      return cutShort(this.answer(ids), signal);
    },
    preferred: (query: PreferenceQuery, signal: AbortSignal) => {
      this.asked.push(`preferred ${query.available.join(",")} of ${query.count}`);
      return cutShort(this.prefers(query), signal);
    },
    preStart: (ids: readonly string[], signal: AbortSignal) => {
      this.asked.push(`preStart ${ids.join(",")}`);
      return cutShort(this.preStarted(ids), signal);
    },
  };
}

export function allocated(envs: Record<string, string>): Uint8Array {
  return new Uint8Array(ContainerAllocateResponse.encode(ContainerAllocateResponse.fromPartial({ envs })).finish());
}

function cutShort<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  return new Promise((resolve, reject) => {
    work.then(resolve, reject);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
}

/** An agent's devices alone, life after life: pods that come and go, plugins as they are told. */
export class DeviceWorld {
  readonly clock: FakeClock;
  readonly file = new SlowFile();
  /** Files that could not be believed. */
  readonly setAside: string[] = [];
  readonly plugins = new Map<string, ScriptedPlugin>();
  /** Pods that were admitted and have not gone; what runs outlives the agent. */
  readonly running = new Map<PodUid, IdentifiedPod>();
  readonly waiting = new Map<PodUid, string>();
  readonly rejected = new Map<PodUid, string>();
  readonly health: PodUid[] = [];
  /** Pods whose containers were told to try again. */
  readonly startable: PodUid[] = [];
  readonly #pods = new Map<PodUid, IdentifiedPod>();
  readonly #numa = new NumaNodes([0, 1]);
  settings: AlignmentSettings = { policy: "none", scope: "container", prefersClosest: false };
  manager: DeviceManager;
  #admission: DeviceAdmission;
  #scope: TaskScope;

  constructor(clock: FakeClock) {
    this.clock = clock;
    [this.#scope, this.manager, this.#admission] = this.#begin();
  }

  #begin(): [TaskScope, DeviceManager, DeviceAdmission] {
    const scope = new TaskScope();
    const plugin = (resource: string) => this.plugins.get(resource);
    const onDecidable = (): void => {
      if (!scope.signal.aborted) for (const uid of [...this.waiting.keys()]) this.#decide(uid);
    };
    const manager: DeviceManager = new DeviceManager({
      clock: this.clock,
      log: silentLogger,
      plugin,
      path: "checkpoint",
      // The dead write no more.
      files: {
        read: () => this.file.read(),
        save: async (path, text) => {
          if (scope.signal.aborted) return;
          if (path.endsWith(".spoilt")) this.setAside.push(text);
          else await this.file.save(path, text);
        },
      },
      onDecidable,
      onStartable: (uid) => void this.startable.push(uid),
      onHealth: (uid) => void this.health.push(uid),
      onAmounts: () => {},
    });
    return [scope, manager, new DeviceAdmission(manager, { scope, clock: this.clock, plugin, onDecidable })];
  }

  /** "a@1" is a device on NUMA node 1. */
  offer(resource: string, devices: readonly string[], unhealthy: readonly string[] = []): ScriptedPlugin {
    const plugin = this.plugins.get(resource) ?? new ScriptedPlugin();
    if (!this.plugins.has(resource)) {
      this.plugins.set(resource, plugin);
      this.manager.registered(resource);
    }
    const listed = devices.map((text) => {
      const [id = "", node] = text.split("@");
      return { id, isHealthy: !unhealthy.includes(id), numaNodes: node === undefined ? [] : [Number(node)] };
    });
    this.manager.listed(resource, listed);
    return plugin;
  }

  withdraw(resource: string): void {
    if (this.plugins.delete(resource)) this.manager.lost(resource);
  }

  add(pod: IdentifiedPod): void {
    this.#pods.set(uidOf(pod), pod);
    this.#decide(uidOf(pod));
  }

  remove(uid: PodUid): void {
    for (const pods of [this.#pods, this.running, this.waiting, this.rejected]) pods.delete(uid);
    this.manager.forget(uid);
  }

  #decide(uid: PodUid): void {
    const pod = this.#pods.get(uid);
    if (pod === undefined || this.running.has(uid)) return;
    const isHere = (other: PodUid): boolean => this.running.has(other);
    const [manager, admission] = [this.manager, this.#admission];
    const preferred: DeviceAdmission["preferred"] = (...question) => admission.preferred(...question);
    const alignment = new Alignment(this.settings, this.#numa, {
      providers: [new DeviceProvider(this.#numa, { manager, preferred, isHere })],
      distances: [],
    });
    const handler = deviceHandler({ manager, admission, isHere, holds: (other) => this.#holds(other) }, () => {
      try {
        return { type: "admitted", takeBack: alignment.give(pod) };
      } catch (error) {
        if (!(error instanceof AllocationError)) throw error;
        return { type: "rejected", reason: error.reason, message: error.message };
      }
    });
    const verdict = handler(pod, []);
    this.waiting.delete(uid);
    if (verdict.type === "undecided") this.waiting.set(uid, verdict.waitsFor);
    else if (verdict.type === "rejected") this.rejected.set(uid, verdict.message);
    else this.running.set(uid, pod);
  }

  /** All pods are known: what others had is free. */
  sweep(): void {
    this.manager.retain((uid) => this.#holds(uid));
  }

  #holds(uid: PodUid): boolean {
    return this.#pods.has(uid) && !this.rejected.has(uid);
  }

  /** The agent dies, at any write, and its successor begins; plugins have to register anew. */
  async restart(cameThrough: boolean, onLoaded = (): void => {}): Promise<void> {
    await this.#end(cameThrough);
    [this.#scope, this.manager, this.#admission] = this.#begin();
    this.plugins.clear();
    await this.manager.load();
    onLoaded();
    for (const uid of [...this.waiting.keys()]) this.#decide(uid);
  }

  /** Ids of the resource, with the pods that have them. */
  owners(resource: string): ReadonlyMap<string, readonly PodUid[]> {
    const owners = new Map<string, PodUid[]>();
    for (const [uid, containers] of this.manager.state) {
      const ids = new Set([...containers.values()].flatMap((grants) => grants.get(resource)?.ids ?? []));
      for (const id of ids) owners.set(id, [...(owners.get(id) ?? []), uid]);
    }
    return owners;
  }

  async stop(): Promise<void> {
    await this.#end(false);
  }

  async #end(cameThrough: boolean): Promise<void> {
    const stopped = this.#scope.stop();
    this.file.die(cameThrough);
    await stopped;
  }
}

/** Lets everything happen that needs no time; writes of the file included. */
export async function settleWorld(world: DeviceWorld, landing = true): Promise<void> {
  for (let round = 0; round < 12; round++) {
    for (let turn = 0; turn < 6; turn++) await Promise.resolve();
    if (!world.file.isWriting || !landing) continue;
    world.file.land();
  }
}
