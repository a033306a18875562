import type {
  IdentifiedPod,
  PersistentVolume,
  PersistentVolumeClaim,
  PodUid,
  Volume,
} from "../../../ground/model/index.ts";
import type { PodVolume } from "../../runtime/index.ts";
import type { VolumeObjectRef } from "../objects/ports.ts";
import type { VolumeUsage } from "../stats/disk-usage.ts";

/** What a volume is made from: a part of the pod's own spec, or a persistent volume that the pod has a claim on. */
export type VolumeSource =
  | { readonly type: "inline"; readonly volume: Volume }
  | {
      readonly type: "claim";
      readonly persistent: PersistentVolume;
      readonly claim: PersistentVolumeClaim;
      readonly readOnly: boolean;
    };

/** Where a volume's things lie on disk; all that is needed to take it away again. */
export interface VolumePlace {
  readonly uid: PodUid;
  /** The name on disk: that of the persistent volume for a claim, else the volume's own. */
  readonly specName: string;
  readonly form: "filesystem" | "block";
  /** `pods/<uid>/volumes/<plugin>/<name>`, or below `volumeDevices` for a block device. */
  readonly directory: string;
  /** `pods/<uid>/plugins`, for markers. */
  readonly markers: string;
}

/** A volume that a pod wants. */
export interface WantedVolume extends VolumePlace {
  readonly pod: IdentifiedPod;
  /** The name in the pod's spec. */
  readonly name: string;
  readonly source: VolumeSource;
}

/** What content depends on besides the pod itself. */
export type Need = VolumeObjectRef | { readonly kind: "trustbundles" };

export interface SetUpContext {
  /** False when the volume is in use already and only its content or registration is renewed. */
  readonly isFirst: boolean;
  /** Says what takes so long, for people who ask why the pod waits. */
  readonly progress: (text: string) => void;
  /** Says which version of an object the content is made from, for people. */
  readonly madeFrom?: (version: string | undefined) => void;
  /** Calls for another `setUp` at this time at the latest, however this one ends. */
  readonly againAt: (time: number) => void;
}

export interface SetUpResult {
  readonly volume: PodVolume;
  /** Groups that the pod's processes join to use the volume. */
  readonly groups?: readonly number[];
  /** Whether files changed; undefined for kinds that only mount. */
  readonly content?: "written" | "unchanged";
}

export interface ForeseenSetUp {
  readonly from: string;
  /** What a person should know. */
  readonly note?: string;
}

/** One kind of volume: how it is made for a pod, and how it is taken away again. */
export interface VolumeKind {
  /** `kubernetes.io/empty-dir`; with `~` for `/` it is a directory name, shared with the Go kubelet. */
  readonly plugin: string;
  matches(source: VolumeSource): boolean;
  /** For a kind of many names, one of each driver: that of this volume, in place of `plugin`. */
  pluginOf?(source: VolumeSource): string;
  /** Whether a volume found on disk under this name is of that kind, too. */
  owns?(plugin: string): boolean;
  /** Whether the owner of a persistent volume may add options for mount(8). */
  readonly takesMountOptions?: boolean;
  needs?(wanted: WantedVolume): readonly Need[];
  /** Where `setUp` would take the volume from; throws what is missing as it would. Reads, and makes nothing. */
  foresee?(wanted: WantedVolume, signal: AbortSignal): Promise<ForeseenSetUp>;
  /** Makes or renews the volume. Must cope with whatever an interrupted earlier call has left. */
  setUp(wanted: WantedVolume, context: SetUpContext, signal: AbortSignal): Promise<SetUpResult>;
  /**
   * Takes the volume away, from what is on disk alone. After it `place.directory` is gone, or it throws. `progress` says
   * what takes so long, for people who ask why the pod does not end.
   */
  tearDown(place: VolumePlace, signal: AbortSignal, progress?: (text: string) => void): Promise<void>;
  /** Nothing of the pod's volumes is on disk any more. Also told of those that were wanted, but never made. */
  released?(uid: PodUid, signal: AbortSignal): Promise<void>;
  /** How full the volume is; undefined when that can't be told. Kinds without it have nothing to measure. */
  measure?(place: VolumePlace, signal: AbortSignal): Promise<VolumeUsage | undefined>;
  /** Told once at the start which volumes an earlier run of the agent has left. */
  restore?(places: readonly VolumePlace[]): Promise<void>;
  /** What it has to watch for as long as the agent runs. */
  run?(signal: AbortSignal): Promise<never>;
  /** Takes away what belongs to no pod any more. */
  cleanUp?(signal: AbortSignal): Promise<void>;
}

/** Steps of mounting by the names users know from events. */
export type MountStep =
  | "SetUp"
  | "FindPluginBySpec"
  | "NodeAffinity check"
  | "NewMounter initialization"
  | "MountOptionSupport check"
  | "WaitForAttach"
  | "MountDevice"
  | "SetUpDevice"
  | "VerifyControllerAttachedVolume"
  | "MapPodDevice"
  | "Setup while expanding";

/** A step other than the usual one failed. */
export class StepError extends Error {
  override readonly name = "StepError";
  readonly step: MountStep;

  constructor(step: MountStep, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.step = step;
  }
}

/** The pod's volumes that share one object: which volume this is depends on it, so it can't even be looked for. */
export class UnresolvedVolumeError extends Error {
  override readonly name = "UnresolvedVolumeError";
}

/** The kind that volumes under this name are of. */
export function ownerOf(kinds: readonly VolumeKind[], plugin: string): VolumeKind | undefined {
  return kinds.find((kind) => kind.plugin === plugin) ?? kinds.find((kind) => kind.owns?.(plugin));
}

export function pluginDirectory(plugin: string): string {
  return plugin.replaceAll("/", "~");
}
