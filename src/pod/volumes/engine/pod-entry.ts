import { waitFor } from "../../../ground/base/index.ts";
import type { IdentifiedPod, PodUid } from "../../../ground/model/index.ts";
import type { PodVolume } from "../../runtime/index.ts";
import { VolumeError } from "./volume-error.ts";
import type { VolumeTask } from "./volume-task.ts";

/** The volumes of one pod, as far as this run of the agent has dealt with them. */
export class PodEntry {
  readonly uid: PodUid;
  readonly tasks = new Map<string, VolumeTask>();
  pod: IdentifiedPod;
  /** Somebody asked for the volumes and was told that one can't be had. */
  isRefused = false;
  #onChange = new Set<() => void>();

  constructor(uid: PodUid, pod: IdentifiedPod) {
    this.uid = uid;
    this.pod = pod;
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
    return [...this.tasks.values()].every(({ state }) => state.step === "mounted");
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
    const failures = [...this.tasks.values()].flatMap(({ name, state }) =>
      state.step === "failed" ? [{ name, ...state.failure }] : [],
    );
    if (failures.length === 0) return undefined;
    const list = (names: readonly string[]): string => `[${[...names].sort().join(" ")}]`;
    const unmounted = [...this.tasks.values()].filter(({ state }) => state.step !== "mounted").map(({ name }) => name);
    const unattached = failures.filter(({ isUnattached }) => isUnattached).map(({ name }) => name);
    const unresolved = failures.filter(({ isUnresolved }) => isUnresolved).map(({ name }) => name);
    const message = [
      `unmounted volumes=${list(unmounted)}`,
      `unattached volumes=${list(unattached)}`,
      `failed to process volumes=${list(unresolved)}: ${failures.map((failure) => failure.message).join("; ")}`,
    ].join(", ");
    return new VolumeError(message, {
      isAnnounced: unresolved.length === 0,
      nextTryAt: Math.min(...failures.map(({ nextTryAt }) => nextTryAt)),
    });
  }

  /** What the pod waits for just now, in words for its ledger. */
  waitingFor(): string {
    const parts = [...this.tasks.values()].flatMap(({ name, state }) => {
      if (state.step === "mounted") return [];
      return [state.step === "mounting" && state.doing !== "" ? `${name} (${state.doing})` : name];
    });
    return `volumes are being mounted: ${parts.join(", ")}`;
  }
}
