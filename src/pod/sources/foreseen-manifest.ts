import type { IdentifiedPod, Pod, Problem } from "../../ground/model/index.ts";
import type { StaticPodSettings } from "./make-static-pod.ts";
import { podsOfManifest } from "./manifest-pods.ts";

/** What a manifest would come to as a file among the others. */
export interface ForeseenManifest {
  readonly path: string;
  readonly problems: readonly Problem[];
  /** Undefined when any problem is an error, or it holds something else. */
  readonly pod: IdentifiedPod | undefined;
  /** As it was written, before anything was filled in. */
  readonly written: Pod | undefined;
  /** The pod that runs from the file of this name now. */
  readonly replaces: IdentifiedPod | undefined;
}

/** The same where there are no others. */
export async function foreseeManifest(
  bytes: Uint8Array,
  path: string,
  settings: StaticPodSettings,
): Promise<ForeseenManifest> {
  const { pods, written, problems } = await podsOfManifest(bytes, { source: "file", path }, settings);
  return { path, problems, pod: pods[0], written: written[0], replaces: undefined };
}
