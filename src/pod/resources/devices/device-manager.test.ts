import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import type { LastingFiles } from "../following-file.ts";
import { DeviceManager } from "./device-manager.ts";

function managerWith(read: LastingFiles["read"]): DeviceManager {
  return new DeviceManager({
    clock: new FakeClock(),
    log: silentLogger,
    plugin: () => undefined,
    path: "checkpoint",
    files: { read, save: async () => {} },
    onDecidable: () => {},
    onStartable: () => {},
    onHealth: () => {},
    onAmounts: () => {},
  });
}

test("a list of devices in use that is damaged keeps nobody from starting", async () => {
  await managerWith(async () => "{").load();
});

for (const code of ["EMFILE", "ENFILE", "ENOMEM"]) {
  test(`a list of devices in use that can't be read now (${code}) is not taken for none`, async () => {
    const manager = managerWith(async () => {
      throw Object.assign(new Error(code), { code });
    });
    await assert.rejects(manager.load(), { code });
  });
}
