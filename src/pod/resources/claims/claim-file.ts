import { crc32 } from "node:zlib";
import type { PreparedDevice } from "../../../connections/plugins/index.ts";
import { goJson } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { asCheckpointObject, type CheckpointObject, inGoOrder, memberOf, textMember } from "../go-checkpoint.ts";
import { type ClaimRecord, type ClaimState, claimKey } from "./claim-state.ts";

const kind = "DRACheckpoint";
const apiVersion = "checkpoint.dra.kubelet.k8s.io/v1";

/** `dra_manager_state` in the kubelet's own form: either agent goes on with what the other left. */
export function encodeClaimFile(state: ClaimState): string {
  const list = inGoOrder(state).map(([, { uid, name, namespace, pods, drivers }]) => ({
    ClaimUID: uid,
    ClaimName: name,
    Namespace: namespace,
    PodUIDs: Object.fromEntries([...pods].sort().map((pod) => [pod, {}])),
    DriverState: Object.fromEntries(inGoOrder(drivers).map(([driver, devices]) => [driver, driverEntry(devices)])),
  }));
  const data = goJson({ kind, apiVersion, ClaimInfoStateList: list.length === 0 ? null : list });
  return goJson({ Data: data, Checksum: crc32(data) });
}

function driverEntry(devices: readonly PreparedDevice[]): object {
  const entries = devices.map(({ pool, device, requests, cdiIds }) => ({
    PoolName: pool,
    DeviceName: device,
    RequestNames: orNull(requests),
    CDIDeviceIDs: orNull(cdiIds),
  }));
  return { Devices: orNull(entries) };
}

/** Go writes a list that nobody has filled as null. */
function orNull<Item>(list: readonly Item[]): readonly Item[] | null {
  return list.length === 0 ? null : list;
}

/** Throws where the file is not whole, or not what it should be. */
export function decodeClaimFile(text: string): ClaimState {
  const file = asCheckpointObject(JSON.parse(text), "the file");
  const data = textMember(file, "Data");
  if (memberOf(file, "Checksum") !== crc32(data)) throw new Error("checkpoint is corrupted");
  const content = asCheckpointObject(JSON.parse(data), "Data");
  const version = textMember(content, "apiVersion");
  if (version !== apiVersion) throw new Error(`"apiVersion" is ${JSON.stringify(version)}, wanted "${apiVersion}"`);
  const records = listOf(memberOf(content, "ClaimInfoStateList"), "ClaimInfoStateList").map(recordOf);
  return new Map(records.map((record) => [claimKey(record), record]));
}

function recordOf(value: unknown, index: number): ClaimRecord {
  const entry = asCheckpointObject(value, `ClaimInfoStateList[${index}]`);
  const drivers = Object.entries(asCheckpointObject(memberOf(entry, "DriverState") ?? {}, "DriverState"));
  return {
    uid: textMember(entry, "ClaimUID"),
    name: textMember(entry, "ClaimName"),
    namespace: textMember(entry, "Namespace"),
    pods: new Set(Object.keys(asCheckpointObject(memberOf(entry, "PodUIDs") ?? {}, "PodUIDs")) as PodUid[]),
    drivers: new Map(
      drivers.map(([driver, state]) => {
        const devices = memberOf(asCheckpointObject(state, `DriverState of ${driver}`), "Devices");
        return [driver, listOf(devices, "Devices").map(deviceOf)];
      }),
    ),
  };
}

function deviceOf(value: unknown): PreparedDevice {
  const device: CheckpointObject = asCheckpointObject(value, "a device");
  return {
    pool: textMember(device, "PoolName"),
    device: textMember(device, "DeviceName"),
    requests: textsOf(memberOf(device, "RequestNames"), "RequestNames"),
    cdiIds: textsOf(memberOf(device, "CDIDeviceIDs"), "CDIDeviceIDs"),
  };
}

function textsOf(value: unknown, what: string): readonly string[] {
  return listOf(value, what).map((text) => {
    if (typeof text !== "string") throw new Error(`${what} has ${JSON.stringify(text)}, wanted texts`);
    return text;
  });
}

function listOf(value: unknown, what: string): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw new Error(`${what} is no list`);
  return value;
}
