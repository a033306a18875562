import {
  type ConfigMap,
  decodeManifest,
  type IdentifiedPod,
  isError,
  locateProblem,
  maxManifestBytes,
  type Pod,
  type PodList,
  type Problem,
  type Secret,
} from "../../ground/model/index.ts";
import { type ManifestOrigin, makeStaticPod, type StaticPodSettings } from "./make-static-pod.ts";

export interface ManifestPods {
  /** Empty when any problem is an error. */
  readonly pods: readonly IdentifiedPod[];
  /** The same as they were written, before anything was filled in. */
  readonly written: readonly Pod[];
  readonly problems: readonly Problem[];
}

/** The pods that a manifest's bytes describe. Files hold one pod; a URL may also answer with a list. Never throws. */
export async function podsOfManifest(
  bytes: Uint8Array,
  origin: ManifestOrigin,
  settings: StaticPodSettings,
): Promise<ManifestPods> {
  const text = textOf(bytes);
  if (typeof text !== "string") return { pods: [], written: [], problems: [text] };
  const kinds = origin.source === "file" ? (["Pod"] as const) : (["Pod", "PodList"] as const);
  const besides = settings.references.allow.length > 0 ? (["ConfigMap", "Secret"] as const) : [];
  const { object, problems, locate } = await decodeManifest(text, [...kinds, ...besides]);
  if (object === undefined || isOtherObject(object)) return { pods: [], written: [], problems };
  const made = itemsOf(object).map(([pod, prefix]) => {
    const { pod: identified, problems: found } = makeStaticPod(pod, origin, settings);
    const named = found.map((problem) => ({ ...problem, field: `${prefix}${problem.field}` }));
    return { pod: identified, written: pod, problems: named };
  });
  const all = [...problems, ...made.flatMap((item) => item.problems).map((problem) => locateProblem(problem, locate))];
  // One bad pod refuses the whole list: a half-applied list would be neither the old nor the new one.
  if (all.some(isError)) return { pods: [], written: [], problems: all };
  const written = made.map((item) => item.written);
  return { pods: made.flatMap(({ pod }) => pod ?? []), written, problems: all };
}

/** Config maps and secrets may lie beside pods; whoever needs them reads them by himself. */
function isOtherObject(object: Pod | PodList | ConfigMap | Secret): object is ConfigMap | Secret {
  return object.kind === "ConfigMap" || object.kind === "Secret";
}

function itemsOf(object: Pod | PodList): readonly (readonly [pod: Pod, prefix: string])[] {
  if (!("items" in object)) return [[object, ""]];
  return object.items.map((pod, index) => [pod, `items[${index}].`]);
}

function textOf(bytes: Uint8Array): string | Problem {
  if (bytes.byteLength > maxManifestBytes) {
    return wholeFile(`The manifest is larger than ${maxManifestBytes / 1024 / 1024} MiB`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return wholeFile("The manifest is not UTF-8 text");
  }
}

function wholeFile(message: string): Problem {
  return { severity: "error", field: "", message };
}
