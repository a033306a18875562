import type { ClaimAnswer, ClaimRef, DraDriver } from "../../src/connections/plugins/index.ts";
import { DraDriverMissing, PluginError } from "../../src/connections/plugins/index.ts";
import { Ledger, messageOf, silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import type { DraResourceClaim, IdentifiedPod, PodStep, PodUid } from "../../src/ground/model/index.ts";
import { ClaimManager, ClaimSweep } from "../../src/pod/resources/index.ts";
import { SlowFile } from "./device-world.ts";
import type { FakeClock } from "./fake-clock.ts";

/** A driver that behaves as it is told, and knows what it has prepared. */
export class ScriptedDriver implements DraDriver {
  readonly name: string;
  readonly prepared = new Set<string>();
  readonly asked: string[] = [];
  /** When each claim was last worked at, in calls. */
  readonly #doneAt = new Map<string, number>();
  /** What it answers instead of doing it well; a promise that never settles is a driver that hangs. */
  behave: (method: string, claims: readonly ClaimRef[]) => Promise<ReadonlyMap<string, ClaimAnswer>> | undefined = () =>
    undefined;

  constructor(name: string) {
    this.name = name;
  }

  prepare(claims: readonly ClaimRef[], signal: AbortSignal): Promise<ReadonlyMap<string, ClaimAnswer>> {
    return this.#answer("prepare", claims, signal);
  }

  unprepare(claims: readonly ClaimRef[], signal: AbortSignal): Promise<ReadonlyMap<string, ClaimAnswer>> {
    return this.#answer("unprepare", claims, signal);
  }

  /** What it was asked for, done well. */
  does(method: string, claims: readonly ClaimRef[]): ReadonlyMap<string, ClaimAnswer> {
    for (const { uid } of claims) this.#doneAt.set(uid, this.asked.length);
    if (method === "prepare") for (const { uid } of claims) this.prepared.add(uid);
    else for (const { uid } of claims) this.prepared.delete(uid);
    const devices = (claim: ClaimRef) => (method === "prepare" ? this.devicesOf(claim) : []);
    return new Map(claims.map((claim) => [claim.uid, { error: "", devices: devices(claim) }]));
  }

  /** Whether it has done a later call for one of the claims: a driver does not go back to an earlier one then. */
  hasDoneSince(call: number, claims: readonly ClaimRef[]): boolean {
    return claims.some(({ uid }) => (this.#doneAt.get(uid) ?? 0) > call);
  }

  devicesOf({ name }: Pick<ClaimRef, "name">): ClaimAnswer["devices"] {
    return ["a", "b"].map((request) => ({
      pool: "node",
      device: `${name}-${request}`,
      requests: [request],
      cdiIds: [`${this.name}/${name}=${request}`],
    }));
  }

  #answer(method: string, claims: readonly ClaimRef[], signal: AbortSignal): Promise<ReadonlyMap<string, ClaimAnswer>> {
    this.asked.push(`${method} ${claims.map(({ name }) => name).join(",")}`);
    const answer = this.behave(method, claims) ?? Promise.resolve(this.does(method, claims));
    return new Promise((resolve, reject) => {
      answer.then(resolve, reject);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  }
}

/** As after 45 s. */
export const timedOut = (): Promise<never> =>
  Promise.reject(new PluginError("x", "DeadlineExceeded", "context deadline exceeded"));

/** An agent's claims alone, life after life, with drivers that outlive it. */
export class ClaimWorld {
  readonly clock: FakeClock;
  readonly file = new SlowFile();
  readonly drivers = new Map<string, ScriptedDriver>();
  readonly claims = new Map<string, DraResourceClaim>();
  readonly woken: PodUid[] = [];
  readonly held = new Set<PodUid>();
  readonly warnings: string[] = [];
  /** GETs of claims. */
  readonly fetched: string[] = [];
  settings = { extendedResources: true };
  ledger = new Ledger<PodUid, PodStep>(undefined as never);
  manager: ClaimManager;
  sweep: ClaimSweep;
  #scope: TaskScope;

  constructor(clock: FakeClock) {
    this.clock = clock;
    [this.#scope, this.manager, this.sweep] = this.#begin();
  }

  get signal(): AbortSignal {
    return this.#scope.signal;
  }

  #begin(): [TaskScope, ClaimManager, ClaimSweep] {
    const scope = new TaskScope();
    this.ledger = new Ledger(this.clock);
    const manager = new ClaimManager({
      scope,
      clock: this.clock,
      log: silentLogger,
      ledger: this.ledger,
      settings: this.settings,
      driver: (name) => {
        const found = this.drivers.get(name);
        if (found === undefined) throw new DraDriverMissing(name);
        return found;
      },
      getClaim: async (namespace, name) => {
        this.fetched.push(name);
        const claim = this.claims.get(`${namespace}/${name}`);
        if (claim === undefined) throw new Error(`resourceclaims.resource.k8s.io "${name}" not found`);
        return claim;
      },
      path: "dra_manager_state",
      // The dead write no more.
      files: {
        read: () => this.file.read(),
        save: async (path, text) => (scope.signal.aborted ? undefined : this.file.save(path, text)),
      },
      onChange: (uid) => void this.woken.push(uid),
    });
    const holds = (uid: PodUid): boolean => this.held.has(uid);
    const log = { ...silentLogger, warn: (message: string) => void this.warnings.push(message) };
    const sweep = new ClaimSweep({ scope, clock: this.clock, log, manager, holds });
    return [scope, manager, sweep];
  }

  driver(name: string): ScriptedDriver {
    let driver = this.drivers.get(name);
    if (driver === undefined) {
      driver = new ScriptedDriver(name);
      this.drivers.set(name, driver);
      this.manager.registered(name);
    }
    return driver;
  }

  /** A claim that is allocated by these drivers and reserved for these pods. */
  allocate(name: string, drivers: readonly string[], pods: readonly string[], uid = `uid-${name}`): void {
    const results = drivers.map((driver) => ({ driver, pool: "node", device: "x", request: "a" }));
    this.claims.set(`default/${name}`, {
      metadata: { name, namespace: "default", uid },
      spec: {},
      status: {
        allocation: { devices: { results } },
        reservedFor: pods.map((pod) => ({ resource: "pods", name: pod, uid: pod })),
      },
    });
  }

  /** The agent dies, at any write, and its successor begins. */
  async restart(cameThrough: boolean): Promise<void> {
    const stopped = this.#scope.stop();
    this.file.die(cameThrough);
    await stopped;
    [this.#scope, this.manager, this.sweep] = this.#begin();
    const loaded = this.manager.load();
    await this.settle();
    await loaded;
  }

  async stop(): Promise<void> {
    const stopped = this.#scope.stop();
    this.file.die(false);
    await stopped;
  }

  /** What comes of the work once everything has happened that needs no time; undefined: it goes on. */
  async outcome(work: Promise<void>): Promise<string | undefined> {
    let outcome: string | undefined;
    work.then(
      () => {
        outcome = "done";
      },
      (error: unknown) => {
        outcome = messageOf(error);
      },
    );
    await this.settle();
    return outcome;
  }

  prepare(pod: IdentifiedPod, hasSandbox = false): Promise<string | undefined> {
    return this.outcome(this.manager.prepare(pod, hasSandbox, this.signal));
  }

  release(uid: string): Promise<string | undefined> {
    return this.outcome(this.manager.release(uid as PodUid, this.signal));
  }

  /** However many turns it takes. */
  async landed(work: Promise<void>): Promise<void> {
    let isOver = false;
    const over = work.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await new Promise(setImmediate);
      this.file.land();
    }
    await over;
  }

  async settle(): Promise<void> {
    for (let round = 0; round < 12; round++) {
      for (let turn = 0; turn < 12; turn++) await Promise.resolve();
      this.file.land();
    }
  }
}

/** A pod whose only container names all of these claims; "c/a" asks for one request of the claim c. */
export function claimingPod(name: string, claims: readonly string[]): IdentifiedPod {
  const entries = claims.map((claim) => claim.split("/"));
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", uid: name },
    spec: {
      resourceClaims: [...new Set(entries.map(([claim = ""]) => claim))].map((claim) => ({
        name: `my-${claim}`,
        resourceClaimName: claim,
      })),
      containers: [
        {
          name: "main",
          image: "busybox:1",
          resources: {
            claims: entries.map(([claim, request]) => ({ name: `my-${claim}`, ...(request && { request }) })),
          },
        },
      ],
    },
  } as IdentifiedPod;
}
