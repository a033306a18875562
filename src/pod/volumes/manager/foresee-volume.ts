import { isAbort, messageOf } from "../../../ground/base/index.ts";
import { type IdentifiedPod, uidOf } from "../../../ground/model/index.ts";
import type { VolumeKind, WantedVolume } from "../kinds/kind.ts";
import { type Claims, checkNodeAffinity, resolveSource } from "./claims.ts";
import type { PodPlaces } from "./places.ts";
import { identifyVolume } from "./volume-task.ts";
import type { ContainerVolume } from "./volumes-of-containers.ts";

/** A volume that a pod would have. */
export interface ForeseenVolume {
  readonly name: string;
  /** `kubernetes.io/empty-dir`; undefined where it can't be told what it is. */
  readonly plugin: string | undefined;
  /** Where its content would come from. */
  readonly from: string | undefined;
  /** Why it can't be had now. */
  readonly problem: string | undefined;
  /** What else a person should know. */
  readonly note: string | undefined;
}

export interface ForeseePorts {
  readonly kinds: readonly VolumeKind[];
  readonly claims: Claims | undefined;
  readonly places: PodPlaces;
}

/** What would come of a volume of this pod. Nothing is made, held or told. */
export async function foreseeVolume(
  pod: IdentifiedPod,
  used: ContainerVolume,
  ports: ForeseePorts,
  signal: AbortSignal,
): Promise<ForeseenVolume> {
  const { name } = used.volume;
  let plugin: string | undefined;
  try {
    const source = await resolveSource(pod, used, ports.claims, signal);
    const identity = identifyVolume({ uid: uidOf(pod), name }, source, ports);
    plugin = identity.plugin;
    if (source.type === "claim") checkNodeAffinity(source.persistent, ports.claims?.node());
    const wanted: WantedVolume = { ...identity.place, pod, name, source };
    const { from, note } = (await identity.kind.foresee?.(wanted, signal)) ?? { from: wanted.directory };
    return { name, plugin, from, note, problem: undefined };
  } catch (error) {
    if (isAbort(error, signal)) throw error;
    return { name, plugin, from: undefined, note: undefined, problem: messageOf(error) };
  }
}
