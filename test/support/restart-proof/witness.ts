import { Informer, type KubeClient, resources, withoutManagedFields } from "../../../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../../src/ground/base/index.ts";
import type { Pod } from "../../../src/ground/model/index.ts";

export const steadyLabel = "proof.example/steady";

/** What must not happen to a steady pod. */
export type Harm = "restart" | "flip" | "rejection" | "replacement" | "change";

export interface Incident {
  readonly harm: Harm;
  readonly pod: string;
  readonly what: string;
}

/** Watches the steady pods in the API and writes down everything that happens to them, and whether any other is refused. */
export class Witness implements AsyncDisposable {
  readonly incidents: Incident[] = [];
  readonly #scope = new TaskScope();
  readonly #informer: Informer<Pod>;
  readonly #seen = new Map<string, Pod>();
  /** Failed before anybody watched: another build has refused them, and what becomes of them is no harm. */
  readonly #lost = new Set<string>();
  #isWatching = false;

  constructor(admin: KubeClient) {
    this.#informer = new Informer<Pod>(
      { resource: resources.pods, namespace: "default", keep: withoutManagedFields },
      { client: admin, clock: systemClock, log: silentLogger, random: Math.random },
    );
    this.#informer.onChange(({ type, object }) => this.#note(type, object));
    this.#scope.spawn("watch", (signal) => this.#informer.run(signal));
  }

  /** The steady pods as the API has them, by the name the proof gave them. */
  pods(): ReadonlyMap<string, Pod> {
    const steady = this.#informer.list().filter((pod) => {
      const name = steadyName(pod);
      return name !== undefined && !this.#lost.has(name);
    });
    return new Map(steady.map((pod) => [steadyName(pod) ?? "", pod]));
  }

  /** The names of all pods that the API has. */
  names(): readonly string[] {
    return this.#informer.list().map(({ metadata }) => metadata?.name ?? "");
  }

  /** How they are now is how they must stay. */
  begin(): void {
    this.#seen.clear();
    this.incidents.splice(0);
    for (const [name, { status }] of this.pods()) if (status?.phase === "Failed") this.#lost.add(name);
    for (const pod of this.pods().values()) this.#seen.set(pod.metadata?.uid ?? "", pod);
    this.#isWatching = true;
  }

  end(): void {
    this.#isWatching = false;
  }

  #note(type: "added" | "updated" | "deleted", pod: Pod): void {
    if (!this.#isWatching) return;
    const name = steadyName(pod);
    if (name === undefined) {
      this.#noteOther(pod);
      return;
    }
    if (this.#lost.has(name)) return;
    const uid = pod.metadata?.uid ?? "";
    const was = this.#seen.get(uid);
    if (type === "deleted") this.#seen.delete(uid);
    else this.#seen.set(uid, pod);
    if (was === undefined || type === "deleted") {
      const what = type === "deleted" ? "deleted" : "made again";
      this.incidents.push({ harm: "replacement", pod: name, what: `${uid} was ${what}` });
      return;
    }
    for (const { harm, what } of differences(was, pod)) this.incidents.push({ harm, pod: name, what });
  }

  /** Pods that come and go may crash, but none is to fail before it is asked to end: each is started again. */
  #noteOther({ metadata, status }: Pod): void {
    const isRefused = status?.phase === "Failed" && metadata?.deletionTimestamp === undefined;
    if (!isRefused) return;
    const what = `${status.reason}: ${status.message}`;
    this.incidents.push({ harm: "rejection", pod: metadata?.name ?? "", what });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
  }
}

export function steadyName(pod: Pod): string | undefined {
  return pod.metadata?.labels?.[steadyLabel];
}

/** What the same pod shows at two moments that it must not. */
export function differences(was: Pod, is: Pod): readonly { readonly harm: Harm; readonly what: string }[] {
  const [before, now] = [traits(was), traits(is)];
  const found: { harm: Harm; what: string }[] = [];
  for (const [key, { harm, value }] of now) {
    const old = before.get(key)?.value;
    if (old !== value) found.push({ harm, what: `${key}: ${old} -> ${value}${reasonOf(is)}` });
  }
  for (const [key, { harm, value }] of before) {
    if (!now.has(key)) found.push({ harm, what: `${key}: ${value} -> nothing${reasonOf(is)}` });
  }
  return found;
}

function traits({ status = {}, metadata }: Pod): ReadonlyMap<string, { readonly harm: Harm; readonly value: string }> {
  const { initContainerStatuses = [], containerStatuses = [], conditions = [], phase, podIPs, startTime } = status;
  const ready = conditions.find(({ type }) => type === "Ready");
  const entries: [string, { harm: Harm; value: string }][] = [
    ["phase", { harm: phase === "Failed" ? "rejection" : "change", value: String(phase) }],
    ["ready", { harm: "flip", value: `${ready?.status} since ${ready?.lastTransitionTime}` }],
    ["addresses", { harm: "change", value: JSON.stringify(podIPs) }],
    ["start time", { harm: "change", value: String(startTime) }],
    ["uid", { harm: "replacement", value: String(metadata?.uid) }],
  ];
  for (const { name, containerID, restartCount, ready: isReady, started } of [
    ...initContainerStatuses,
    ...containerStatuses,
  ]) {
    entries.push([`${name}'s id`, { harm: "restart", value: String(containerID) }]);
    entries.push([`${name}'s restarts`, { harm: "restart", value: String(restartCount) }]);
    entries.push([`${name}'s readiness`, { harm: "flip", value: String(isReady) }]);
    entries.push([`${name}'s start`, { harm: "flip", value: String(started) }]);
  }
  return new Map(entries);
}

function reasonOf({ status }: Pod): string {
  return status?.reason === undefined ? "" : ` (${status.reason}: ${status.message})`;
}
