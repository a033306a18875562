import { isSidecar, type Pod, type PodUid } from "../../../ground/model/index.ts";
import { type DeviceInventory, devicesOf } from "./device-inventory.ts";
import { amountsInUse, type DeviceState, grantsIn } from "./device-state.ts";

/** A plugin may list a hundred thousand; of those that nobody has, so many are shown, and how many more there are. */
const mostFreeShown = 100;

interface DeviceHolder {
  readonly uid: PodUid;
  readonly container: string;
  readonly namespace?: string | undefined;
  readonly pod?: string | undefined;
  readonly why: string;
}

/** Every resource that plugins offer or somebody has devices of, as JSON: for `nodelet resources`. */
export function deviceReport(
  inventory: Pick<DeviceInventory, "get" | "names">,
  state: DeviceState,
  pods: readonly Pod[],
): readonly object[] {
  const names = new Set([...inventory.names, ...amountsInUse(state).keys()]);
  const byUid = new Map(pods.map((pod) => [pod.metadata?.uid, pod]));
  return [...names].sort().map((resource) => {
    const known = inventory.get(resource);
    const listed = devicesOf(known);
    const holders = holdersOf(resource, state, byUid);
    const noted = nodesNoted(resource, state);
    const isThere = known?.step === "listed";
    const free = [...listed.keys()].filter((id) => !holders.has(id)).sort();
    const shown = [...[...holders.keys()].sort(), ...free.slice(0, mostFreeShown)];
    return {
      resource,
      plugin: isThere ? "registered" : known?.step === "awaited" ? "awaited" : "gone",
      ...countsOf(listed, holders, isThere),
      notShown: free.length - Math.min(free.length, mostFreeShown),
      devices: shown.map((id) => {
        const device = listed.get(id);
        const health = device === undefined ? "Unknown" : device.isHealthy && isThere ? "Healthy" : "Unhealthy";
        return {
          id,
          health,
          nodes: device?.numaNodes ?? noted.get(id) ?? [],
          holders: holders.get(id) ?? [],
        };
      }),
    };
  });
}

function countsOf(listed: ReturnType<typeof devicesOf>, holders: ReadonlyMap<string, unknown>, isThere: boolean) {
  const healthy = isThere ? [...listed.values()].filter(({ isHealthy }) => isHealthy) : [];
  const free = healthy.filter(({ id }) => !holders.has(id)).length;
  return { listed: listed.size, healthy: healthy.length, given: holders.size, free };
}

/** Who has each device: several only where they are containers of one pod, one after the other. */
function holdersOf(
  resource: string,
  state: DeviceState,
  pods: ReadonlyMap<string | undefined, Pod>,
): ReadonlyMap<string, readonly DeviceHolder[]> {
  const holders = new Map<string, DeviceHolder[]>();
  for (const { uid, container, resource: of, grant } of grantsIn(state)) {
    if (of !== resource) continue;
    const pod = pods.get(uid);
    const names = pod?.metadata === undefined ? {} : { namespace: pod.metadata.namespace, pod: pod.metadata.name };
    const why = whyOf(pod, container, resource, grant.response !== undefined);
    for (const id of grant.ids) holders.set(id, [...(holders.get(id) ?? []), { uid, container, ...names, why }]);
  }
  return holders;
}

function whyOf(pod: Pod | undefined, name: string, resource: string, isAnswered: boolean): string {
  if (pod?.spec === undefined) return "the pod is not known any more; what it had is free when its source has spoken";
  const inits = pod.spec.initContainers ?? [];
  const spec = [...inits, ...pod.spec.containers].find((container) => container.name === name);
  const asks = `asks for ${spec?.resources?.limits?.[resource] ?? "some"}`;
  const isInit = inits.some((init) => init.name === name && !isSidecar(init));
  const again = isInit ? "; later containers of the pod use it again" : "";
  return `${asks}${again}${isAnswered ? "" : "; its plugin has yet to say how it is used"}`;
}

/** Where each device lay when it was given: of one that its plugin does not list now nothing else is known. */
function nodesNoted(resource: string, state: DeviceState): ReadonlyMap<string, readonly number[]> {
  const nodes = new Map<string, number[]>();
  for (const { resource: of, grant } of grantsIn(state)) {
    if (of !== resource) continue;
    for (const [node, ids] of grant.byNode) {
      for (const id of node < 0 ? [] : ids) nodes.set(id, [...new Set([...(nodes.get(id) ?? []), node])]);
    }
  }
  return nodes;
}
