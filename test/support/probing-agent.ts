import assert from "node:assert/strict";
import { Ledger, silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import type {
  Container,
  ContainerId,
  IdentifiedPod,
  PodEvent,
  PodLedger,
  PodUid,
  Probe,
} from "../../src/ground/model/index.ts";
import type { ProbeOutcome } from "../../src/pod/probes/outcome.ts";
import type { ProbeKind, ProbeMeasurement, ProbeResult, ProbeStore, SavedResult } from "../../src/pod/probes/ports.ts";
import type { SeenContainer } from "../../src/pod/probes/probe-worker.ts";
import { Probes } from "../../src/pod/probes/probes.ts";
import type { ProbeTarget } from "../../src/pod/probes/target.ts";
import { FakeClock, settle } from "./fake-clock.ts";

/** A store as the file store behaves, without files. */
export class MemoryStore implements ProbeStore {
  readonly saved = new Map<PodUid, readonly SavedResult[]>();
  saves = 0;
  load(uid: PodUid): readonly SavedResult[] | undefined {
    return this.saved.get(uid);
  }
  async save(uid: PodUid, results: readonly SavedResult[]): Promise<void> {
    await settle(1);
    this.saves++;
    this.saved.set(uid, results);
  }
  async remove(uid: PodUid): Promise<void> {
    this.saved.delete(uid);
  }
}

export type Answer = ProbeOutcome["type"] | "hang" | ProbeOutcome;

/** Probes of one agent's life, the network behind them being a table of answers by port. */
export class ProbingAgent implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly scope = new TaskScope();
  readonly store: MemoryStore;
  readonly probes: Probes;
  readonly ledger: PodLedger;
  readonly events: string[] = [];
  readonly changes: string[] = [];
  readonly attempts: { readonly at: number; readonly port: number; readonly host: string }[] = [];
  readonly targets = new Set<ProbeTarget>();
  readonly measured: ProbeMeasurement[] = [];
  /** What the port answers, at once or after a while; a list is used up in turn, its last entry for good. */
  readonly answers = new Map<number, readonly Answer[]>();
  attemptMs = 0;
  readonly #start: number;

  constructor({ clock = new FakeClock(), store = new MemoryStore() } = {}) {
    this.clock = clock;
    this.store = store;
    this.#start = clock.now();
    this.ledger = new Ledger(clock);
    this.probes = new Probes({
      clock,
      log: silentLogger,
      scope: this.scope,
      store,
      ledger: this.ledger,
      recordEvent: (_, { type, reason, message, fieldPath }: PodEvent) => {
        this.events.push(`${type} ${reason} ${fieldPath}: ${message}`);
      },
      onProbe: (measurement) => this.measured.push(measurement),
      run: async (target, _timeoutMs, signal) => {
        assert.ok(target.type === "tcp");
        this.targets.add(target);
        this.attempts.push({ at: this.clock.now() - this.#start, port: target.port, host: target.host });
        if (this.attemptMs > 0) await this.clock.sleep(this.attemptMs, signal);
        return this.#answer(target.port, signal);
      },
    });
    this.probes.onChange((_, container, kind, result) => this.changes.push(`${container} ${kind} ${result}`));
  }

  async #answer(port: number, signal: AbortSignal): Promise<ProbeOutcome> {
    const [answer = "success", ...rest] = this.answers.get(port) ?? [];
    if (rest.length > 0) this.answers.set(port, rest);
    if (typeof answer === "object") return answer;
    switch (answer) {
      case "hang":
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => reject(signal.reason), { once: true });
        });
      case "success":
        return { type: "success" };
      case "error":
        return { type: "error", state: "unknown", message: "broken" };
      default:
        return { type: answer, output: "ill" };
    }
  }

  /** When the port was tried, in milliseconds since the agent started. */
  times(port: number): readonly number[] {
    return this.attempts.filter((attempt) => attempt.port === port).map(({ at }) => at);
  }

  observe(
    containers: Record<string, Partial<SeenContainer>>,
    uid = "u1",
    podIp: string | undefined = "10.0.0.1",
  ): void {
    const seen = Object.entries(containers).map(([name, container]): [string, SeenContainer] => [
      name,
      {
        id: `${name}-1` as ContainerId,
        state: "running",
        startedAt: this.clock.now(),
        exitCode: 0,
        ...container,
      },
    ]);
    this.probes.observe(uid as PodUid, { containers: new Map(seen), podIp, hostIp: "192.168.0.1" });
  }

  result(kind: ProbeKind, container = "web", uid = "u1"): ProbeResult | undefined {
    return this.probes.result(uid as PodUid, container, kind);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
    assert.equal(this.clock.pendingTimers, 0, "a timer was left behind");
  }
}

export const probePorts = { liveness: 1, readiness: 2, startup: 3 } as const;
export const u1 = "u1" as PodUid;
export const id = (text: string): ContainerId => text as ContainerId;

export function probe(kind: ProbeKind, settings: Partial<Probe> = {}): Partial<Container> {
  return { [`${kind}Probe`]: { tcpSocket: { port: probePorts[kind] }, periodSeconds: 10, ...settings } };
}

export function podOf(
  containers: readonly Container[],
  spec: Partial<IdentifiedPod["spec"]> = {},
  metadata: Partial<IdentifiedPod["metadata"]> = {},
): IdentifiedPod {
  return { metadata: { name: "p", namespace: "ns", uid: "u1", ...metadata }, spec: { containers, ...spec } };
}

export const web = (...probes: Partial<Container>[]): Container => Object.assign({ name: "web" }, ...probes);
