import type { VolumeTask } from "./volume-task.ts";

/** One volume of a pod as people are shown it. */
export interface ShownVolume {
  readonly name: string;
  /** `kubernetes.io/empty-dir`; undefined until it is known what the volume is. */
  readonly plugin: string | undefined;
  readonly step: "waiting" | "mounting" | "failed" | "mounted";
  /** What goes on, or why it failed; empty: nothing to say. */
  readonly detail: string;
  readonly since: number | undefined;
  readonly nextTryAt: number | undefined;
  /** The persistent volume behind a claim. */
  readonly persistentVolume: string | undefined;
  /** Of the config map or secret whose content is on disk. */
  readonly version: string | undefined;
  readonly directory: string | undefined;
}

export function shownVolume({ name, plugin, state, source, place, version }: VolumeTask): ShownVolume {
  return {
    name,
    plugin,
    step: state.step,
    detail: state.step === "mounting" ? state.doing : state.step === "failed" ? state.failure.message : "",
    since: state.step === "mounting" ? state.since : undefined,
    nextTryAt: state.step === "failed" ? state.failure.nextTryAt : undefined,
    persistentVolume: source?.type === "claim" ? source.persistent.metadata?.name : undefined,
    version,
    directory: place?.directory,
  };
}
