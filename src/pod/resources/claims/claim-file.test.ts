import assert from "node:assert/strict";
import { test } from "node:test";
import type { PodUid } from "../../../ground/model/index.ts";
import { decodeClaimFile, encodeClaimFile } from "./claim-file.ts";
import { type ClaimState, noClaims } from "./claim-state.ts";

const gpu = { pool: "node-1", device: "gpu-0", requests: ["a", "b"], cdiIds: ["vendor.com/gpu=0"] };
const state: ClaimState = new Map([
  [
    "ns/claim",
    {
      uid: "c-1",
      name: "claim",
      namespace: "ns",
      pods: new Set(["pod-2", "pod-1"] as PodUid[]),
      drivers: new Map([
        ["z.example.com", []],
        ["gpu.example.com", [gpu, { ...gpu, device: "gpu-1", requests: [], cdiIds: [] }]],
      ]),
    },
  ],
]);

/** As the kubelet writes it. */
const kubeletData =
  '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[{"ClaimUID":"c-1",' +
  '"ClaimName":"claim","Namespace":"ns","PodUIDs":{"pod-1":{},"pod-2":{}},"DriverState":{"gpu.example.com":{"Devices":[' +
  '{"PoolName":"node-1","DeviceName":"gpu-0","RequestNames":["a","b"],"CDIDeviceIDs":["vendor.com/gpu=0"]},' +
  '{"PoolName":"node-1","DeviceName":"gpu-1","RequestNames":null,"CDIDeviceIDs":null}]},' +
  '"z.example.com":{"Devices":null}}}]}';

test("an empty list has the kubelet's checksum", () => {
  assert.equal(JSON.parse(encodeClaimFile(noClaims)).Checksum, 4010664294);
  const data = '{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[]}';
  assert.equal(decodeClaimFile(JSON.stringify({ Data: data, Checksum: 2361995144 })).size, 0);
});

test("what is written is what the kubelet writes, and is read back", () => {
  const text = encodeClaimFile(state);
  assert.equal(JSON.parse(text).Data, kubeletData);
  assert.equal(encodeClaimFile(decodeClaimFile(text)), text);
  assert.deepEqual(decodeClaimFile(text).get("ns/claim")?.drivers.get("gpu.example.com")?.[0], gpu);
});

test("a file that is not whole is refused", () => {
  const text = encodeClaimFile(state);
  const { Data, Checksum } = JSON.parse(text) as { Data: string; Checksum: number };
  const spoilt: readonly (readonly [string, RegExp])[] = [
    [text.slice(0, -5), /JSON/],
    [JSON.stringify({ Data: Data.replace("gpu-0", "gpu-9"), Checksum }), /checkpoint is corrupted/],
    [JSON.stringify({ Data, Checksum: Checksum + 1 }), /checkpoint is corrupted/],
    ["[]", /the file is \[\]/],
    ['{"Data":{},"Checksum":0}', /"Data" is \{\}/],
    [withSum("{}"), /"apiVersion" is ""/],
    [withSum(Data.replace('"Devices":null', '"Devices":7')), /Devices is no list/],
    [withSum(Data.replace('["a","b"]', "[1]")), /RequestNames has 1/],
    [withSum(Data.replace('/v1"', '/v9"')), /wanted "checkpoint.dra.kubelet.k8s.io\/v1"/],
  ];
  for (const [broken, why] of spoilt) assert.throws(() => decodeClaimFile(broken), why);
});

/** CRC-32 by its definition. */
function withSum(data: string): string {
  let table = 0xffffffff;
  for (const byte of Buffer.from(data)) {
    table ^= byte;
    for (let bit = 0; bit < 8; bit++) table = (table >>> 1) ^ (table & 1 ? 0xedb88320 : 0);
  }
  return JSON.stringify({ Data: data, Checksum: (table ^ 0xffffffff) >>> 0 });
}
