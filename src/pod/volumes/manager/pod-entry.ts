import { type Clock, cutText, Slots, waitFor } from "../../../ground/base/index.ts";
import type { IdentifiedPod, PodUid } from "../../../ground/model/index.ts";
import type { PodVolume } from "../../runtime/index.ts";
import { VolumeError } from "./volume-error.ts";
import type { VolumeTask } from "./volume-task.ts";

/** The volumes of one pod, as far as this run of the agent has dealt with them. */
export class PodEntry {
  readonly uid: PodUid;
  readonly #tasks = new Map<string, VolumeTask>();
  /** A pod may have thousands, and each change of one is a reason to look: these need no look at all of them. */
  readonly #missing = new Set<VolumeTask>();
  readonly #failed = new Set<VolumeTask>();
  /** All want files read and written, which few threads do for everybody. */
  readonly #turns = new Slots<undefined>(tasksAtOnce, { next: ([first]) => first });
  pod: IdentifiedPod;
  /** Somebody asked for the volumes and was told that one can't be had. */
  isRefused = false;
  #onChange = new Set<() => void>();

  constructor(uid: PodUid, pod: IdentifiedPod) {
    this.uid = uid;
    this.pod = pod;
  }

  get tasks(): ReadonlyMap<string, VolumeTask> {
    return this.#tasks;
  }

  add(task: VolumeTask): void {
    this.#tasks.set(task.name, task);
    this.#missing.add(task);
  }

  /** Runs a task when it is its turn. One that takes long lets the next begin: it only waits, for a server perhaps. */
  async inTurn(clock: Clock, run: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const free = await this.#turns.take(undefined, signal);
    const overdue = clock.after(longestTurnMs, free);
    try {
      await run();
    } finally {
      overdue.cancel();
      free();
    }
  }

  /** A task is in another state than before. */
  stateChanged(task: VolumeTask): void {
    const { step } = task.state;
    if (step === "mounted") this.#missing.delete(task);
    else this.#missing.add(task);
    if (step === "failed") this.#failed.add(task);
    else this.#failed.delete(task);
    this.changed();
  }

  changed(): void {
    const listeners = this.#onChange;
    this.#onChange = new Set();
    for (const listener of listeners) listener();
  }

  /** Resolves when any of the volumes changes its state. */
  async nextChange(signal: AbortSignal): Promise<void> {
    await waitFor(signal, (done) => {
      this.#onChange.add(done);
      return () => this.#onChange.delete(done);
    });
  }

  get isComplete(): boolean {
    return this.#missing.size === 0;
  }

  mounted(): ReadonlyMap<string, PodVolume> {
    const volumes = new Map<string, PodVolume>();
    for (const { name, state } of this.tasks.values()) {
      if (state.step === "mounted") volumes.set(name, state.result.volume);
    }
    return volumes;
  }

  groups(): readonly number[] {
    const groups = [...this.tasks.values()].flatMap(({ state }) =>
      state.step === "mounted" ? (state.result.groups ?? []) : [],
    );
    return [...new Set(groups)];
  }

  /** What failed last, as one error for the pod; undefined while every volume is there or on its way. */
  failure(): VolumeError | undefined {
    const failures = [...this.#failed].flatMap(({ name, state }) =>
      state.step === "failed" ? [{ name, ...state.failure }] : [],
    );
    if (failures.length === 0) return undefined;
    const list = (names: readonly string[]): string => `[${[...names].sort().join(" ")}]`;
    const unmounted = [...this.#missing].map(({ name }) => name);
    const unattached = failures.filter(({ isUnattached }) => isUnattached).map(({ name }) => name);
    const unresolved = failures.filter(({ isUnresolved }) => isUnresolved).map(({ name }) => name);
    const message = [
      `unmounted volumes=${list(unmounted)}`,
      `unattached volumes=${list(unattached)}`,
      `failed to process volumes=${list(unresolved)}: ${failures.map((failure) => failure.message).join("; ")}`,
    ].join(", ");
    return new VolumeError(cutText(message, longestMessageBytes), {
      isAnnounced: unresolved.length === 0,
      nextTryAt: failures.reduce((first, { nextTryAt }) => Math.min(first, nextTryAt), Number.POSITIVE_INFINITY),
    });
  }

  /** What the pod waits for just now, in words for its ledger. */
  waitingFor(): string {
    const parts: string[] = [];
    for (const { name, state } of this.#missing) {
      if (parts.length === mostNamed) break;
      parts.push(state.step === "mounting" && state.doing !== "" ? `${name} (${state.doing})` : name);
    }
    const others = this.#missing.size - parts.length;
    return `volumes are being mounted: ${parts.join(", ")}${others === 0 ? "" : ` and ${others} more`}`;
  }
}

/** Enough that waits overlap, few enough that other pods get their turn. */
const tasksAtOnce = 8;
const longestTurnMs = 1_000;
const mostNamed = 20;
/** Each volume that fails has something to say, and there may be thousands. */
const longestMessageBytes = 8 * 1024;
