import type { IdentifiedPod, Volume } from "../model/index.ts";
import type { PodVolume } from "../runtime/index.ts";

/** One kind of volume: how it is made for a pod, and how it is taken away again. */
export interface VolumeKind {
  /** The plugin's name as it appears in directory names; shared with the Go kubelet. */
  readonly pluginName: string;
  handles(volume: Volume): boolean;
  /** Idempotent: called again for a volume that is already there. */
  mount(request: MountRequest, signal: AbortSignal): Promise<PodVolume>;
}

export interface MountRequest {
  readonly pod: IdentifiedPod;
  readonly volume: Volume;
  /** Where the volume lives if it needs a place of its own below the pod's directory. */
  readonly directory: string;
}

/** A volume can't be made; the message is what users read in the FailedMount event. */
export class VolumeError extends Error {
  override readonly name = "VolumeError";
  readonly volume: string;

  constructor(volume: string, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.volume = volume;
  }
}
