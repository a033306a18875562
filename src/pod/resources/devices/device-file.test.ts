import assert from "node:assert/strict";
import { test } from "node:test";
import { ContainerAllocateResponse } from "../../../connections/plugins/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import { decodeDeviceFile, encodeDeviceFile } from "./device-file.ts";
import { nobody, withGrant } from "./device-state.ts";

const gpu = "nvidia.com/gpu";

test("the checksums are the kubelet's", () => {
  const checksum = (text: string): number => (JSON.parse(text) as { Checksum: number }).Checksum;
  assert.equal(checksum(encodeDeviceFile(nobody, new Map())), 3467439661);
  const registered = new Map([[gpu, ["GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0"]]]);
  assert.equal(checksum(encodeDeviceFile(nobody, registered)), 3952659280);
});

test("what is written is read again, and what its plugin has not answered for is nobody's", () => {
  const response = ContainerAllocateResponse.encode(
    ContainerAllocateResponse.fromPartial({ envs: { GPU: "0" }, cdiDevices: [{ name: "nvidia.com/gpu=0" }] }),
  ).finish();
  const uid = "u1" as PodUid;
  const byNode = new Map([
    [-1, ["c"]],
    [0, ["a"]],
    [10, ["a", "b"]],
    [2, ["b"]],
  ]);
  const place = { uid, container: "main", resource: gpu };
  const grant = { ids: ["a", "b", "c"], byNode, response: new Uint8Array(response) };
  let state = withGrant(nobody, place, grant);
  state = withGrant(state, { ...place, container: "other" }, { ...grant, ids: ["d"], response: undefined });
  const text = encodeDeviceFile(state, new Map([[gpu, ["a", "d"]]]));
  assert.match(text, /"DeviceIDs":\{.*"-1":\["c"\]/);
  const read = decodeDeviceFile(text);
  assert.deepEqual(read.resources, [gpu]);
  assert.deepEqual([...(read.state.get(uid)?.keys() ?? [])], ["main"]);
  const again = read.state.get(uid)?.get("main")?.get(gpu);
  assert.deepEqual(again?.ids, ["a", "b", "c"]);
  assert.deepEqual(again?.byNode, new Map([...byNode].sort(([a], [b]) => a - b)));
  assert.deepEqual(again?.response, grant.response);
});

test("a file in which anything was changed is not whole, and one that can't be read is refused", () => {
  const text = encodeDeviceFile(nobody, new Map([[gpu, ["a"]]]));
  assert.equal(decodeDeviceFile(text).isWhole, true);
  for (const changed of [text.replace('"a"', '"b"'), text.replace("null", "[]"), text.replace(/\d+\}$/, "1}")]) {
    assert.equal(decodeDeviceFile(changed).isWhole, false, changed);
  }
  for (const broken of [text.slice(0, -4), "", "[]", text.replace('["a"]', '"a"')]) {
    assert.throws(() => decodeDeviceFile(broken), broken);
  }
});

test("names of members may be written in any case, and an answer that makes no sense costs only its own container", () => {
  const place = { uid: "u1" as PodUid, container: "main", resource: gpu };
  const response = new Uint8Array([0xff, 0xff, 0xff]);
  const text = encodeDeviceFile(
    withGrant(nobody, place, { ids: ["a"], byNode: new Map([[-1, ["a"]]]), response }),
    new Map([[gpu, []]]),
  );
  const read = decodeDeviceFile(text.replace("PodDeviceEntries", "podDeviceEntries").replace("Data", "data"));
  assert.equal(read.state.size, 0);
  assert.deepEqual(read.unreadable, ["u1 main nvidia.com/gpu"]);
});
