// The kinds of objects the server knows.
import { coreKinds } from "./core.ts";
import { groupKinds } from "./groups.ts";
import type { Kind } from "./kind.ts";

export {
  configMaps,
  events,
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  secrets,
  serviceAccounts,
} from "./core.ts";
export {
  certificateSigningRequests,
  csiNodes,
  leases,
  priorityClasses,
  resourceSlices,
  runtimeClasses,
  scalableKinds,
  volumeAttachments,
} from "./groups.ts";
export { apiVersionOf, type Kind, type Subresource } from "./kind.ts";

export const kinds: readonly Kind[] = [...coreKinds, ...groupKinds];

const byPath = new Map(kinds.map((kind) => [`${kind.group}/${kind.version}/${kind.plural}`, kind]));

export function kindByPath(group: string, version: string, plural: string): Kind | undefined {
  return byPath.get(`${group}/${version}/${plural}`);
}

/** Each place in the store once, with a kind that shows what is there. */
export const storedKinds: readonly Kind[] = kinds.filter(
  (kind, index) => kinds.findIndex(({ storage }) => storage === kind.storage) === index,
);
