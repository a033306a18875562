import { type Clock, isAbort } from "../../ground/base/index.ts";
import type { CSINode, CSINodeDriver, Node } from "../../ground/model/index.ts";
import type { CsiNodeInfo, CsiNodeRecords } from "./csi-drivers.ts";

/** Port: the node's own objects at the API server. */
export interface NodeObjects {
  /** Undefined when there is none yet. */
  csiNode(signal: AbortSignal): Promise<CSINode | undefined>;
  /** Creates or replaces; rejects when somebody else has changed it since it was read. */
  putCsiNode(object: CSINode, signal: AbortSignal): Promise<void>;
  node(signal: AbortSignal): Promise<Node>;
  /** Null removes an annotation. Labels are only ever added. */
  patchNode(
    change: {
      readonly annotations: Readonly<Record<string, string | null>>;
      readonly labels: Readonly<Record<string, string>>;
    },
    signal: AbortSignal,
  ): Promise<void>;
}

const nodeIdAnnotation = "csi.volume.kubernetes.io/nodeid";

/** Keeps the CSINode object's drivers, and annotation and labels of the Node, in line with who is registered here. */
export class CsiNodeUpkeep implements CsiNodeRecords {
  readonly #objects: NodeObjects;
  readonly #clock: Clock;

  constructor(objects: NodeObjects, clock: Clock) {
    this.#objects = objects;
    this.#clock = clock;
  }

  async announce(info: CsiNodeInfo, signal: AbortSignal): Promise<void> {
    await this.#persistently(updateTries, signal, async () => {
      const node = await this.#objects.node(signal);
      checkTopology(node, info.topology);
      const ids = nodeIdsOf(node);
      ids[info.driver] = info.nodeId;
      await this.#objects.patchNode(
        { annotations: { [nodeIdAnnotation]: JSON.stringify(sorted(ids)) }, labels: info.topology },
        signal,
      );
      const present = (await this.#objects.csiNode(signal)) ?? emptyFor(node);
      await this.#objects.putCsiNode(withDriver(present, info), signal);
    });
  }

  async withdraw(driver: string, signal: AbortSignal): Promise<void> {
    await this.#persistently(updateTries, signal, async () => {
      const present = await this.#objects.csiNode(signal);
      if (present !== undefined && driversOf(present).some(({ name }) => name === driver)) {
        const drivers = driversOf(present).filter(({ name }) => name !== driver);
        await this.#objects.putCsiNode({ ...present, spec: { ...present.spec, drivers } }, signal);
      }
      const ids = nodeIdsOf(await this.#objects.node(signal));
      if (ids[driver] === undefined) return;
      delete ids[driver];
      const left = Object.keys(ids).length === 0 ? null : JSON.stringify(sorted(ids));
      await this.#objects.patchNode({ annotations: { [nodeIdAnnotation]: left }, labels: {} }, signal);
    });
  }

  async #persistently(
    { tries, firstMs, factor }: { readonly tries: number; readonly firstMs: number; readonly factor: number },
    signal: AbortSignal,
    work: () => Promise<void>,
  ): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (isAbort(error, signal) || error instanceof TopologyCollisionError || attempt === tries) throw error;
        await this.#clock.sleep(firstMs * factor ** (attempt - 1), signal);
      }
    }
  }
}

const updateTries = { tries: 4, firstMs: 10, factor: 5 };

class TopologyCollisionError extends Error {
  override readonly name = "TopologyCollisionError";
}

function checkTopology({ metadata }: Node, topology: Readonly<Record<string, string>>): void {
  for (const [key, value] of Object.entries(topology)) {
    const present = metadata?.labels?.[key];
    if (present === undefined || present === value) continue;
    throw new TopologyCollisionError(
      `detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${present}"`,
    );
  }
}

function emptyFor({ metadata }: Node): CSINode {
  const { name = "", uid = "" } = metadata ?? {};
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "CSINode",
    metadata: { name, ownerReferences: [{ apiVersion: "v1", kind: "Node", name, uid }] },
    spec: { drivers: [] },
  };
}

/** The API server sends an empty list of drivers as null. */
function driversOf({
  spec,
}: {
  readonly spec: { readonly drivers: readonly CSINodeDriver[] | null };
}): readonly CSINodeDriver[] {
  return spec.drivers ?? [];
}

function withDriver(object: CSINode, { driver, nodeId, topology, maxVolumes }: CsiNodeInfo): CSINode {
  const entry: CSINodeDriver = {
    name: driver,
    nodeID: nodeId,
    topologyKeys: Object.keys(topology).sort(),
    ...(maxVolumes > 0n && { allocatable: { count: Number(maxVolumes > 2147483647n ? 2147483647n : maxVolumes) } }),
  };
  const others = driversOf(object).filter(({ name }) => name !== driver);
  return { ...object, spec: { ...object.spec, drivers: [...others, entry] } };
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
