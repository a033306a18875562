import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import type { TaskScope, Timer } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { DashboardPorts } from "../ports.ts";
import type { DoctorLook } from "../views/doctor-look.ts";
import { healthViews, nodeView } from "../views/node-view.ts";
import { podRow } from "../views/pod-row.ts";
import { Sampler } from "./sampler.ts";
import { Watch } from "./watch.ts";

const mostViewers = 20;
const keptAfterLastMs = 5 * 60_000;

/**
 * What viewers see without asking again: the node, the pods, what they use. While nobody looks there is no timer, no
 * sample and no listener; only the charts are kept for some minutes, in case somebody comes back.
 */
export class Live {
  readonly #ports: DashboardPorts;
  readonly #scope: TaskScope;
  readonly #doctor: Pick<DoctorLook, "worst">;
  #watches = 0;
  #watch: Watch | undefined;
  #sampler: Sampler | undefined;
  #forgetting: Timer | undefined;

  constructor(ports: DashboardPorts, doctor: Pick<DoctorLook, "worst">, scope: TaskScope) {
    this.#ports = ports;
    this.#doctor = doctor;
    this.#scope = scope;
  }

  /** Undefined when nobody has looked for long. */
  get sampler(): Sampler | undefined {
    return this.#sampler;
  }

  get isFull(): boolean {
    return (this.#watch?.viewers ?? 0) >= mostViewers;
  }

  /** Shows everything and every change until the reader of the response leaves; `outlet` is the way to it. */
  show(response: ServerResponse, outlet: Writable, lastEventId: string | undefined): void {
    const watch = this.#watch ?? this.#begin();
    watch.show(response, outlet, lastEventId, () => {
      if (watch.viewers === 0) this.#end(watch);
    });
  }

  /** The same as one answer. */
  snapshot(): Record<string, unknown> {
    const { pods } = this.#ports;
    return {
      apiVersion: "nodelet.dev/v1",
      kind: "NodeState",
      now: this.#ports.clock.now(),
      node: nodeView(this.#ports, this.#sampler?.diskBytes, this.#doctor.worst),
      health: healthViews(this.#ports),
      pods: pods.all().map((pod) => podRow(pod, pods.ledger(pod.metadata?.uid as PodUid))),
      sample: this.#sampler?.latest,
    };
  }

  #begin(): Watch {
    this.#forgetting?.cancel();
    this.#forgetting = undefined;
    this.#sampler ??= new Sampler(this.#ports);
    // Who saw an earlier watch, or another agent, knows nothing of what happened in between.
    const epoch = `${Math.round(this.#ports.facts.startedAt).toString(36)}x${++this.#watches}`;
    this.#watch = new Watch(epoch, { sampler: this.#sampler, doctor: this.#doctor }, this.#ports, this.#scope.signal);
    return this.#watch;
  }

  #end(watch: Watch): void {
    if (this.#watch !== watch) return;
    this.#watch = undefined;
    this.#scope.spawn("the dashboard's last viewer left", () => watch.stop());
    this.#forgetting = this.#ports.clock.after(keptAfterLastMs, () => {
      this.#forgetting = undefined;
      this.#sampler = undefined;
    });
  }
}
