import { ContainerAllocateResponse } from "../../../connections/plugins/index.ts";
import { numbersOf, type PodUid } from "../../../ground/model/index.ts";
import {
  asCheckpointObject,
  type CheckpointObject,
  goChecksum,
  goMap,
  goSlice,
  goStruct,
  inGoOrder,
  memberOf,
  textMember,
} from "../go-checkpoint.ts";
import { type DeviceState, grantsIn, nobody, withGrant } from "./device-state.ts";

/** What `kubelet_internal_checkpoint` says, in the kubelet's own form: either agent goes on with what the other left. */
export interface DeviceFile {
  readonly state: DeviceState;
  /** Resources that plugins offered. */
  readonly resources: readonly string[];
  /** False: its checksum is another. Something in it has changed, and nobody can tell what. */
  readonly isWhole: boolean;
  /** Who has entries that make no sense; they are left out. */
  readonly unreadable: readonly string[];
}

interface Entry {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  readonly DeviceIDs: Readonly<Record<string, readonly string[] | null>> | null;
  /** Base64. */
  readonly AllocResp: string | null;
}

type Registered = Readonly<Record<string, readonly string[] | null>>;

/** Devices that their plugin has yet to say how to use are no one's after a restart, as if they had not been given. */
export function encodeDeviceFile(state: DeviceState, registered: ReadonlyMap<string, readonly string[]>): string {
  const entries: Entry[] = [];
  for (const { uid, container, resource, grant } of grantsIn(state)) {
    if (grant.response === undefined) continue;
    entries.push({
      PodUID: uid,
      ContainerName: container,
      ResourceName: resource,
      DeviceIDs: Object.fromEntries(grant.byNode),
      AllocResp: Buffer.from(grant.response).toString("base64"),
    });
  }
  const data = {
    PodDeviceEntries: entries.length === 0 ? null : entries,
    RegisteredDevices: Object.fromEntries(inGoOrder(registered)),
  };
  const checksum = checksumOf(data.PodDeviceEntries, data.RegisteredDevices);
  return JSON.stringify({ Data: data, Checksum: checksum });
}

/** Throws where nothing can be read. */
export function decodeDeviceFile(text: string): DeviceFile {
  const file = asCheckpointObject(JSON.parse(text), "the file");
  const data = asCheckpointObject(memberOf(file, "Data"), "Data");
  const entries = readEntries(memberOf(data, "PodDeviceEntries") ?? null);
  const registered = asLists(memberOf(data, "RegisteredDevices") ?? null, "RegisteredDevices");
  const isWhole = memberOf(file, "Checksum") === checksumOf(entries, registered);
  let state = nobody;
  const unreadable: string[] = [];
  for (const { PodUID, ContainerName: container, ResourceName: resource, DeviceIDs, AllocResp } of entries ?? []) {
    const response = Buffer.from(AllocResp ?? "", "base64");
    try {
      ContainerAllocateResponse.decode(response);
    } catch {
      unreadable.push(`${PodUID} ${container} ${resource}`);
      continue;
    }
    const byNode = new Map(Object.entries(DeviceIDs ?? {}).map(([node, ids]) => [Number(node), ids ?? []]));
    const ids = [...new Set([...byNode.values()].flat())].sort();
    const place = { uid: PodUID as PodUid, container, resource };
    state = withGrant(state, place, { ids, byNode, response: new Uint8Array(response) });
  }
  return { state, resources: Object.keys(registered ?? {}), isWhole, unreadable };
}

function readEntries(value: unknown): readonly Entry[] | null {
  if (value === null) return null;
  if (!Array.isArray(value)) throw new Error("PodDeviceEntries is no list");
  return value.map((item: unknown, index) => {
    const entry = asCheckpointObject(item, `PodDeviceEntries[${index}]`);
    const response = memberOf(entry, "AllocResp") ?? null;
    return {
      PodUID: textMember(entry, "PodUID"),
      ContainerName: textMember(entry, "ContainerName"),
      ResourceName: textMember(entry, "ResourceName"),
      DeviceIDs: asLists(memberOf(entry, "DeviceIDs") ?? null, "DeviceIDs"),
      AllocResp: response === null ? null : textMember(entry, "AllocResp"),
    };
  });
}

function asLists(value: unknown, what: string): Registered | null {
  if (value === null) return null;
  const object: CheckpointObject = asCheckpointObject(value, what);
  for (const [key, list] of Object.entries(object)) {
    if (list === null || (Array.isArray(list) && list.every((item) => typeof item === "string"))) continue;
    throw new Error(`${what}[${JSON.stringify(key.slice(0, 40))}] is no list of texts`);
  }
  return object as Registered;
}

function checksumOf(entries: readonly Entry[] | null, registered: Registered | null): number {
  const value = goStruct({
    PodDeviceEntries: ["[]checkpoint.PodDevicesEntry", entries === null ? nil : goSlice(entries.map(entryText))],
    RegisteredDevices: ["map[string][]string", registered === null ? nil : listsText(Object.entries(registered))],
  });
  return goChecksum(`(checkpoint.checkpointData)${value}`);
}

const nil = "<nil>";

function entryText({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: Entry): string {
  const nodes =
    DeviceIDs === null ? null : Object.entries(DeviceIDs).map(([node, ids]) => [Number(node), ids] as const);
  return goStruct({
    PodUID: ["string", PodUID],
    ContainerName: ["string", ContainerName],
    ResourceName: ["string", ResourceName],
    DeviceIDs: ["checkpoint.DevicesPerNUMA", nodes === null ? nil : listsText(nodes)],
    AllocResp: ["[]uint8", AllocResp === null ? nil : `[${numbersOf(Buffer.from(AllocResp, "base64"))}]`],
  });
}

function listsText(entries: readonly (readonly [string | number, readonly string[] | null])[]): string {
  return goMap(entries.map(([key, ids]) => [key, ids === null ? nil : goSlice(ids)]));
}
