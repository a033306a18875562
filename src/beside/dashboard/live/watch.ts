import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import { isAbort, TaskScope, type Timer } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { DashboardPorts } from "../ports.ts";
import type { DoctorLook } from "../views/doctor-look.ts";
import { healthViews, nodeView } from "../views/node-view.ts";
import { podRow } from "../views/pod-row.ts";
import type { HistoryView } from "../wire.ts";
import { EventStream } from "./event-stream.ts";
import { LiveState } from "./live-state.ts";
import type { Sampler } from "./sampler.ts";

const sampleEveryMs = 2_000;
const signOfLifeEveryMs = 15_000;
/** Changes that come within this time are told together. */
const gatheredMs = 30;

/** Follows everything that viewers are shown, from the first viewer to the last. */
export class Watch {
  readonly #ports: DashboardPorts;
  readonly #sampler: Sampler;
  readonly #doctor: Pick<DoctorLook, "worst">;
  readonly #epoch: string;
  readonly #state = new LiveState();
  readonly #streams = new Set<EventStream>();
  readonly #changedPods = new Set<PodUid>();
  readonly #scope: TaskScope;
  readonly #unsubscribe: readonly (() => void)[];
  #gathering: Timer | undefined;
  #lifeShownAt: number;

  constructor(
    epoch: string,
    { sampler, doctor }: { readonly sampler: Sampler; readonly doctor: Pick<DoctorLook, "worst"> },
    ports: DashboardPorts,
    parent: AbortSignal,
  ) {
    this.#epoch = epoch;
    this.#sampler = sampler;
    this.#doctor = doctor;
    this.#ports = ports;
    this.#lifeShownAt = ports.clock.monotonic();
    this.#scope = new TaskScope(parent);
    const { pods } = ports;
    this.#unsubscribe = [
      pods.watch(({ object }) => this.#changed(object.metadata?.uid as PodUid)),
      pods.watchLedgers((uid) => this.#changed(uid)),
    ];
    this.#noteNode();
    for (const { metadata } of pods.all()) this.#changedPods.add(metadata?.uid as PodUid);
    this.#notePods();
    this.#scope.spawn("samples", (signal) => this.#sampleUntil(signal));
  }

  get viewers(): number {
    return this.#streams.size;
  }

  /** Tells the reader of the response everything and every change; `onLeft` when it has gone. */
  show(response: ServerResponse, outlet: Writable, lastEventId: string | undefined, onLeft: () => void): void {
    const stream = new EventStream(outlet, this.#state, this.#epoch, lastEventId);
    this.#streams.add(stream);
    response.once("close", () => {
      this.#streams.delete(stream);
      onLeft();
    });
    stream.send();
    const history: HistoryView = { since: this.#sampler.since, node: this.#sampler.nodeHistory() };
    stream.sendPassing("history", JSON.stringify(history));
    const { latest } = this.#sampler;
    if (latest !== undefined) stream.sendPassing("sample", JSON.stringify(latest));
  }

  async stop(): Promise<void> {
    for (const unsubscribe of this.#unsubscribe) unsubscribe();
    this.#gathering?.cancel();
    await this.#scope.stop();
  }

  #changed(uid: PodUid): void {
    this.#changedPods.add(uid);
    this.#gathering ??= this.#ports.clock.after(gatheredMs, () => {
      this.#gathering = undefined;
      if (this.#notePods()) this.#send();
    });
  }

  /** Whether anything that is shown has changed. */
  #notePods(): boolean {
    const { pods } = this.#ports;
    const changed = new Set(this.#changedPods);
    this.#changedPods.clear();
    let isNews = false;
    for (const pod of pods.all()) {
      const uid = pod.metadata?.uid as PodUid;
      if (!changed.delete(uid)) continue;
      isNews = this.#state.set(`pod/${uid}`, podRow(pod, pods.ledger(uid))) || isNews;
    }
    for (const uid of changed) isNews = this.#state.remove(`pod/${uid}`) || isNews;
    return isNews;
  }

  #noteNode(): boolean {
    const node = this.#state.set("node", nodeView(this.#ports, this.#sampler.diskBytes, this.#doctor.worst));
    return this.#state.set("health", healthViews(this.#ports)) || node;
  }

  #send(): void {
    for (const stream of this.#streams) stream.send();
  }

  async #sampleUntil(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#ports;
    while (!signal.aborted) {
      try {
        const sample = JSON.stringify(await this.#sampler.sample(signal));
        if (this.#noteNode()) this.#send();
        for (const stream of this.#streams) stream.sendPassing("sample", sample);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        // The pages show the last they had; the next look may work.
        log.debug(1, "The dashboard could not look at the node", { error });
      }
      this.#showLife();
      await clock.sleep(sampleEveryMs, signal);
    }
  }

  #showLife(): void {
    const now = this.#ports.clock.monotonic();
    if (now - this.#lifeShownAt < signOfLifeEveryMs) return;
    this.#lifeShownAt = now;
    for (const stream of this.#streams) stream.sendSignOfLife();
  }
}
