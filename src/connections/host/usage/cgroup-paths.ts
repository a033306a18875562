import { type CgroupNaming, type PodUid, podCgroup, type QosClass } from "../../../ground/model/index.ts";
import type { CgroupReader } from "./cgroup-usage.ts";

const classes: readonly QosClass[] = ["Burstable", "BestEffort", "Guaranteed"];

/** Finds the cgroups of pods and containers, and remembers them as long as they are there. */
export class CgroupPaths {
  readonly #reader: Pick<CgroupReader, "exists" | "children">;
  readonly #naming: CgroupNaming;
  readonly #pods = new Map<PodUid, string>();

  constructor(reader: Pick<CgroupReader, "exists" | "children">, naming: CgroupNaming) {
    this.#reader = reader;
    this.#naming = naming;
  }

  podPath(uid: PodUid): string | undefined {
    if (!this.#naming.perQos) return undefined;
    const known = this.#pods.get(uid);
    if (known !== undefined && this.#reader.exists(known)) return known;
    const found = classes.map((qos) => podCgroup(this.#naming, qos, uid)).find((path) => this.#reader.exists(path));
    if (found === undefined) this.#pods.delete(uid);
    else this.#pods.set(uid, found);
    return found;
  }

  /** The cgroups below a pod's, by the id that their name holds: `<id>`, `cri-containerd-<id>.scope`… */
  below(podPath: string): (id: string) => string | undefined {
    const names = this.#reader.children(podPath);
    return (id) => {
      const name = names.find((candidate) => candidate.includes(id));
      return name === undefined ? undefined : `${podPath}/${name}`;
    };
  }

  forgetAllBut(uids: ReadonlySet<PodUid>): void {
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) this.#pods.delete(uid);
  }
}
