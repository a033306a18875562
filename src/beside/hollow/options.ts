import type { CgroupDriver } from "../../connections/cri/index.ts";
import type { Clock } from "../../ground/base/index.ts";
import type { UnknownImages } from "./image-store.ts";
import type { UnknownPrograms } from "./shell.ts";

/** What kind of runtime is simulated. The defaults are those of containerd 1.6 with a working network. */
export interface RuntimeTraits {
  readonly clock: Clock;
  readonly name: string;
  readonly version: string;
  /** Whether GetContainerEvents is there. */
  readonly events: "offered" | "absent";
  /** What RuntimeConfig answers; undefined: the method is not there. */
  readonly cgroupDriver: CgroupDriver | undefined;
  /** undefined: as older runtimes, which report none and take any. */
  readonly handlers: readonly RuntimeHandlerTrait[] | undefined;
  readonly features: { readonly supplementalGroupsPolicy: boolean } | undefined;
  readonly unknownPrograms: UnknownPrograms;
  readonly unknownImages: UnknownImages;
  readonly podCidr: string;
  /** `files`: logs are written where CRI says, if their directory is there. */
  readonly logs: "files" | "none";
  /** Deadlines that calls without their own get, as from CriClient. */
  readonly requestTimeoutMs: number;
  /** Where a streaming server listens; undefined: exec, attach and port-forward fail. */
  readonly streamingBaseUrl: string | undefined;
}

export interface RuntimeHandlerTrait {
  readonly name: string;
  readonly features?: { readonly recursiveReadOnlyMounts: boolean; readonly userNamespaces: boolean };
}

export const defaultTraits = {
  name: "containerd",
  version: "1.6.20",
  events: "absent",
  cgroupDriver: undefined,
  handlers: undefined,
  features: undefined,
  unknownPrograms: "runForever",
  unknownImages: "pullable",
  podCidr: "10.88.0.0/16",
  logs: "files",
  requestTimeoutMs: 120_000,
  streamingBaseUrl: undefined,
} as const satisfies Omit<RuntimeTraits, "clock">;
