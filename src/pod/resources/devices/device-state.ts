import type { PodUid } from "../../../ground/model/index.ts";

/** Devices of one resource that a container has. */
export interface DeviceGrant {
  /** In order. */
  readonly ids: readonly string[];
  /** By the number of the NUMA node, as their plugin told when they were given; -1: nowhere in particular. */
  readonly byNode: ReadonlyMap<number, readonly string[]>;
  /** What the container needs to use them, as the plugin said; undefined: it has yet to say it. */
  readonly response: Uint8Array | undefined;
}

type ByResource = ReadonlyMap<string, DeviceGrant>;
type ByContainer = ReadonlyMap<string, ByResource>;

/** Who has which devices. Never changed, only replaced, so that any earlier one can be returned to. */
export type DeviceState = ReadonlyMap<PodUid, ByContainer>;

export const nobody: DeviceState = new Map();

export interface GrantPlace {
  readonly uid: PodUid;
  readonly container: string;
  readonly resource: string;
}

export function grantAt(state: DeviceState, { uid, container, resource }: GrantPlace): DeviceGrant | undefined {
  return state.get(uid)?.get(container)?.get(resource);
}

/** Undefined takes the grant away. */
export function withGrant(state: DeviceState, place: GrantPlace, grant: DeviceGrant | undefined): DeviceState {
  const { uid, container, resource } = place;
  const containers = state.get(uid) ?? new Map();
  const resources = containers.get(container) ?? new Map();
  return replaced(state, uid, replaced(containers, container, replaced(resources, resource, grant)));
}

export function withoutDevicesOf(state: DeviceState, uid: PodUid): DeviceState {
  return state.has(uid) ? replaced(state, uid, undefined) : state;
}

/** The map with another value; an empty map or undefined as value takes the key away. */
function replaced<Key, Value>(
  map: ReadonlyMap<Key, Value>,
  key: Key,
  value: Value | undefined,
): ReadonlyMap<Key, Value> {
  const copy = new Map(map);
  if (value === undefined || (value instanceof Map && value.size === 0)) copy.delete(key);
  else copy.set(key, value);
  return copy;
}

export function* grantsIn(state: DeviceState): Generator<GrantPlace & { readonly grant: DeviceGrant }> {
  for (const [uid, containers] of state) {
    for (const [container, resources] of containers) {
      for (const [resource, grant] of resources) yield { uid, container, resource, grant };
    }
  }
}

/** Devices of a resource that somebody has. */
export function devicesInUse(state: DeviceState, resource: string): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { resource: of, grant } of grantsIn(state)) if (of === resource) for (const id of grant.ids) ids.add(id);
  return ids;
}

/** Every resource of which somebody has devices, and how many. */
export function amountsInUse(state: DeviceState): ReadonlyMap<string, number> {
  const ids = new Map<string, Set<string>>();
  for (const { resource, grant } of grantsIn(state)) {
    const known = ids.get(resource) ?? new Set();
    for (const id of grant.ids) known.add(id);
    ids.set(resource, known);
  }
  return new Map([...ids].map(([resource, { size }]) => [resource, size]));
}
