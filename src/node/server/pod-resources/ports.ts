import type { Container, IdentifiedPod, PodUid } from "../../../ground/model/index.ts";

/** Devices of one resource; by the number of the NUMA node, -1: nowhere in particular. */
export interface ShownDevices {
  readonly resource: string;
  readonly byNode: ReadonlyMap<number, readonly string[]>;
}

/** Memory of one type on these NUMA nodes. */
export interface ShownMemory {
  readonly type: string;
  readonly bytes: number;
  readonly nodes: readonly number[];
}

/** A device of a claim. */
export interface ShownClaim {
  readonly name: string;
  readonly namespace: string;
  readonly devices: readonly {
    readonly driver: string;
    readonly pool: string;
    readonly device: string;
    readonly cdiIds: readonly string[];
  }[];
}

/** What those who ask see of who has what. */
export interface PodResourcesPorts {
  /** Pods whose containers are wanted, or still run. */
  readonly activePods: () => readonly IdentifiedPod[];
  /** Pods that have ended included. */
  readonly allPods: () => Iterable<IdentifiedPod>;
  readonly devicesOf: (uid: PodUid, container: string) => readonly ShownDevices[];
  /** CPUs of its own. */
  readonly cpusOf: (uid: PodUid, container: string) => readonly number[];
  readonly memoryOf: (uid: PodUid, container: string) => readonly ShownMemory[];
  readonly claimsOf: (pod: IdentifiedPod, container: Container) => readonly ShownClaim[];
  readonly allocatable: () => {
    readonly devices: readonly ShownDevices[];
    readonly cpus: readonly number[];
    readonly memory: readonly ShownMemory[];
  };
  readonly onRequest: (version: "v1" | "v1alpha1", method: "list" | "get" | "get_allocatable") => void;
  readonly onGetFailed: () => void;
}

export interface PodResourcesSettings {
  readonly showsActiveOnly: boolean;
  readonly answersGet: boolean;
  readonly showsClaims: boolean;
}
