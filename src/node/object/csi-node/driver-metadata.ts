import type { CsiNodeInfo } from "../../../connections/plugins/index.ts";
import type { Node } from "../../../ground/model/index.ts";

const nodeIdAnnotation = "csi.volume.kubernetes.io/nodeid";

/** What changes in the Node's metadata. Null removes an annotation; labels are only ever added. */
export interface MetadataChange {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly labels?: Readonly<Record<string, string>>;
}

/** A driver says of the node's topology what the Node's labels deny. Trying again does not help. */
export class TopologyCollisionError extends Error {
  override readonly name = "TopologyCollisionError";
}

/** What the Node has to be told when a driver comes; undefined when it says all that already. */
export function comingDriver(node: Node, { driver, nodeId, topology }: CsiNodeInfo): MetadataChange | undefined {
  const labels = node.metadata?.labels ?? {};
  const missing = Object.entries(topology).filter(([key, value]) => {
    const present = labels[key];
    if (present === undefined || present === value) return present === undefined;
    throw new TopologyCollisionError(
      `detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${present}"`,
    );
  });
  const ids = nodeIdsOf(node);
  const isKnown = ids[driver] === nodeId;
  if (isKnown && missing.length === 0) return undefined;
  ids[driver] = nodeId;
  return {
    ...(!isKnown && { annotations: { [nodeIdAnnotation]: JSON.stringify(sorted(ids)) } }),
    ...(missing.length > 0 && { labels: Object.fromEntries(missing) }),
  };
}

/** What the Node has to be told when a driver leaves; its labels stay. */
export function leavingDriver(node: Node, driver: string): MetadataChange | undefined {
  const ids = nodeIdsOf(node);
  if (ids[driver] === undefined) return undefined;
  delete ids[driver];
  const left = Object.keys(ids).length === 0 ? null : JSON.stringify(sorted(ids));
  return { annotations: { [nodeIdAnnotation]: left } };
}

function nodeIdsOf({ metadata }: Node): Record<string, string> {
  const text = metadata?.annotations?.[nodeIdAnnotation];
  if (text === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === "object" && parsed !== null ? { ...(parsed as Record<string, string>) } : {};
  } catch {
    return {};
  }
}

function sorted(map: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}
