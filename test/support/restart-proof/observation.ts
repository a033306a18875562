import type { CriClient } from "../../../src/connections/cri/index.ts";
import type { Pod } from "../../../src/ground/model/index.ts";
import { CgroupWatch } from "./cgroup-watch.ts";
import { RuntimeWatch } from "./runtime-watch.ts";
import type { Harm, Incident, Witness } from "./witness.ts";

/** The steady pods as three see them, from now on: the API, the runtime and the kernel. */
export class Observation implements AsyncDisposable {
  /** How they were at its begin. */
  readonly first: ReadonlyMap<string, Pod>;
  readonly runtime: RuntimeWatch;
  readonly cgroups: CgroupWatch;
  readonly #witness: Witness;

  private constructor(witness: Witness, first: ReadonlyMap<string, Pod>, runtime: RuntimeWatch, cgroups: CgroupWatch) {
    this.#witness = witness;
    this.first = first;
    this.runtime = runtime;
    this.cgroups = cgroups;
  }

  static async begin(witness: Witness, cri: CriClient, cgroupRoot: string): Promise<Observation> {
    witness.begin();
    const first = witness.pods();
    const running = [...first.values()].filter(({ status }) => status?.phase === "Running");
    const uids = new Set(running.map(ownUid));
    const runtime = await RuntimeWatch.start(cri, uids);
    const cgroups = await CgroupWatch.start(cgroupRoot, uids);
    // Who looks where nothing is would never see a change.
    const containers = running.reduce((sum, { status }) => sum + (status?.containerStatuses?.length ?? 0), 0);
    const unseen = [...uids].filter((uid) => !cgroups.sees(uid));
    if (unseen.length > 0) throw new Error(`no limits were found of the pods ${unseen.join(", ")} in ${cgroupRoot}`);
    if (runtime.size < running.length + containers) {
      throw new Error(`the runtime shows ${runtime.size} sandboxes and containers of ${running.length} pods`);
    }
    return new Observation(witness, first, runtime, cgroups);
  }

  get incidents(): readonly Incident[] {
    return this.#witness.incidents;
  }

  count(harm: Harm): number {
    return this.incidents.filter((incident) => incident.harm === harm).length;
  }

  /** All that was seen, one line each. */
  lines(): readonly string[] {
    return [
      ...this.incidents.map(({ harm, pod, what }) => `${harm} of ${pod}: ${what}`),
      ...this.runtime.changes.map((change) => `runtime: ${change}`),
      ...this.cgroups.changes.map((change) => `cgroup ${change}`),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#witness.end();
    await this.cgroups[Symbol.asyncDispose]();
  }
}

/** The uid that the node knows the pod by: a mirror has another. */
function ownUid({ metadata }: Pod): string {
  return metadata?.annotations?.["kubernetes.io/config.hash"] ?? metadata?.uid ?? "";
}
