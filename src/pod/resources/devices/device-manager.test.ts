import assert from "node:assert/strict";
import { test } from "node:test";
import { gpu } from "../../../../test/support/device-tests.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { ContainerAllocateResponse } from "../../../connections/plugins/index.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { LastingFiles } from "../following-file.ts";
import { encodeDeviceFile } from "./device-file.ts";
import { DeviceManager } from "./device-manager.ts";
import { nobody, withGrant } from "./device-state.ts";

function managerWith(read: LastingFiles["read"], save: LastingFiles["save"] = async () => {}): DeviceManager {
  return new DeviceManager({
    clock: new FakeClock(),
    log: silentLogger,
    plugin: () => undefined,
    path: "checkpoint",
    files: { read, save },
    onDecidable: () => {},
    onStartable: () => {},
    onHealth: () => {},
    onAmounts: () => {},
  });
}

test("a list of devices in use that is damaged keeps nobody from starting", async () => {
  await managerWith(async () => "{").load();
});

test("a list whose checksum is wrong is kept aside, and who it says has a device keeps it", async () => {
  const uid = "runs" as PodUid;
  const response = ContainerAllocateResponse.encode(ContainerAllocateResponse.fromPartial({ envs: { GPU: "a" } }));
  const grant = { ids: ["a"], byNode: new Map([[-1, ["a"]]]), response: response.finish() };
  const state = withGrant(nobody, { uid, container: "c0", resource: gpu }, grant);
  const text = encodeDeviceFile(state, new Map([[gpu, ["a", "b"]]])).replace('["a","b"]', '["a","x"]');
  const saved = new Map<string, string>();
  const manager = managerWith(
    async () => text,
    async (path, content) => void saved.set(path, content),
  );
  await manager.load();
  manager.listed(gpu, [
    { id: "a", isHealthy: true, numaNodes: [] },
    { id: "b", isHealthy: true, numaNodes: [] },
  ]);
  assert.deepEqual([...manager.available(gpu)], ["b"]);
  assert.equal(saved.get("checkpoint.spoilt"), text);
});

for (const code of ["EMFILE", "ENFILE", "ENOMEM"]) {
  test(`a list of devices in use that can't be read now (${code}) is not taken for none`, async () => {
    const manager = managerWith(async () => {
      throw Object.assign(new Error(code), { code });
    });
    await assert.rejects(manager.load(), { code });
  });
}
