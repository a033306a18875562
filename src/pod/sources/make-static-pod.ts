import { createHash } from "node:crypto";
import { deepFreeze } from "../../ground/base/index.ts";
import {
  configHashAnnotation,
  defaultPod,
  type IdentifiedPod,
  isError,
  isPlainUid,
  jsonEqual,
  type Pod,
  type Problem,
  type Toleration,
  validatePod,
} from "../../ground/model/index.ts";
import { type ApiReferencePolicy, apiReferenceProblem } from "./api-references.ts";

/** Where a manifest was found; part of the pod's identity. */
export type ManifestOrigin =
  | { readonly source: "file"; readonly path: string }
  | { readonly source: "http"; readonly url: string };

export interface StaticPodSettings {
  readonly nodeName: string;
  readonly references: ApiReferencePolicy;
}

export interface StaticPod {
  /** undefined when any problem is an error. */
  readonly pod: IdentifiedPod | undefined;
  readonly problems: readonly Problem[];
}

/** Makes a decoded pod one of this node: defaults, identity, then every check. Pure. */
export function makeStaticPod(decoded: Pod, origin: ManifestOrigin, settings: StaticPodSettings): StaticPod {
  if (!decoded.metadata?.name) {
    const message = "Required value: name is needed for the pod";
    return { pod: undefined, problems: [{ severity: "error", field: "metadata.name", message }] };
  }
  if (decoded.metadata.uid && !isPlainUid(decoded.metadata.uid)) {
    const message = "Invalid value: a uid has at most 128 letters, digits, '-', '_' and '.', the first of them no sign";
    return { pod: undefined, problems: [{ severity: "error", field: "metadata.uid", message }] };
  }
  const pod = identify(defaultPod(decoded), origin, settings.nodeName);
  const reference = apiReferenceProblem(pod, settings.references);
  const problems = [...validatePod(pod), ...(reference === undefined ? [] : [reference])];
  return { pod: problems.some(isError) ? undefined : pod, problems };
}

function identify(pod: Pod, origin: ManifestOrigin, nodeName: string): IdentifiedPod {
  const { metadata = {}, spec = { containers: [] } } = pod;
  const uid = metadata.uid || digestOf(pod, origin, nodeName);
  return deepFreeze({
    ...pod,
    metadata: {
      ...metadata,
      name: `${metadata.name}-${nodeName.toLowerCase()}`,
      namespace: metadata.namespace || "default",
      uid,
      annotations: { ...metadata.annotations, [configHashAnnotation]: uid },
    },
    spec: {
      ...spec,
      nodeName,
      ...(origin.source === "file" && { tolerations: toleratingNoExecute(spec.tolerations ?? []) }),
    },
    status: { ...pod.status, phase: "Pending" },
  });
}

/** 32 hexadecimal digits that change with the content, the node and the place of the manifest, and with nothing else. */
function digestOf(pod: Pod, origin: ManifestOrigin, nodeName: string): string {
  const hash = createHash("md5").update(canonicalJson(pod));
  if (origin.source === "file") hash.update(`host:${nodeName}`).update(`file:${origin.path}`);
  else hash.update(`url:${origin.url}`);
  return hash.digest("hex");
}

/** JSON with the keys of every object in order, so that the order in which they were written does not count. */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) => {
    if (typeof item !== "object" || item === null || Array.isArray(item)) return item;
    return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** A pod of the node itself stays when the node is being drained of others. */
const noExecute: Toleration = { operator: "Exists", effect: "NoExecute" };

function toleratingNoExecute(tolerations: readonly Toleration[]): readonly Toleration[] {
  const matches = ({ key = "", value = "", operator, effect }: Toleration): boolean =>
    jsonEqual({ operator, effect }, noExecute) && key === "" && value === "";
  if (!tolerations.some(matches)) return [...tolerations, noExecute];
  return tolerations.map((toleration) => (matches(toleration) ? noExecute : toleration));
}
