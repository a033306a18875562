import {
  type IdentifiedPod,
  type ObservedContainer,
  type ObservedPod,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";
import type { ProbeKind, ProbeResult, Probes } from "../probes/index.ts";
import type { ProbesPort } from "./ports.ts";

/** The probes of a pod as its worker drives them: told of what is observed, asked for what they found. */
export class PodProbes implements ProbesPort {
  readonly #probes: Probes;
  readonly #addresses: ProbeAddresses;

  constructor(probes: Probes, addresses: ProbeAddresses) {
    this.#probes = probes;
    this.#addresses = addresses;
  }

  ensure(pod: IdentifiedPod): void {
    this.#probes.ensure(pod);
  }

  observe(pod: IdentifiedPod, observed: ObservedPod): void {
    // The newest comes first, and the last one set under a name stays.
    const containers = new Map(observed.containers.toReversed().map((container) => [container.name, container]));
    const podIp = this.#addresses.podIps(pod, observed)[0];
    this.#probes.observe(uidOf(pod), { containers, podIp, hostIp: this.#addresses.hostIPs()[0] });
  }

  beginTermination(uid: PodUid): void {
    this.#probes.beginTermination(uid);
  }

  remove(uid: PodUid): void {
    this.#probes.remove(uid);
  }

  result(uid: PodUid, container: ObservedContainer, kind: ProbeKind): ProbeResult | undefined {
    return this.#probes.result(uid, container.name, kind, container.id);
  }
}

interface ProbeAddresses {
  podIps(pod: IdentifiedPod, observed: ObservedPod): readonly string[];
  hostIPs(): readonly string[];
}
