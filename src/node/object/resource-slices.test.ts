import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { ResourceSlices } from "./resource-slices.ts";

class SliceLab implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly scope = new TaskScope();
  /** Selectors of what was deleted, with the second. */
  readonly deleted: string[] = [];
  failures = 0;
  readonly slices = new ResourceSlices("node-1", {
    client: {
      deleteCollection: async (_resource, _ref, { fieldSelector }) => {
        this.deleted.push(`${this.clock.monotonic() / 1000} ${fieldSelector}`);
        if (this.failures-- > 0) throw new Error("no API server");
      },
    },
    clock: this.clock,
    log: silentLogger,
    random: () => 0,
  });

  changed(isThere: boolean): void {
    this.slices.driverChanged("gpu.example.com", isThere, this.scope);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.scope.stop();
  }
}

test("slices of all drivers are removed once at the start; a try that fails is repeated, nine times at the most", async () => {
  await using lab = new SliceLab();
  lab.failures = 2;
  lab.slices.start(lab.scope);
  await lab.clock.advance(600_000);
  assert.deepEqual(
    lab.deleted.splice(0),
    [0, 1, 3].map((at) => `${at} spec.nodeName=node-1`),
  );
  lab.failures = 100;
  lab.slices.start(lab.scope);
  await lab.clock.advance(600_000);
  const seconds = lab.deleted.map((text) => Number(text.split(" ")[0]) - 600);
  assert.deepEqual(seconds, [0, 1, 3, 7, 15, 31, 63, 127, 255]);
});

test("those of a driver are removed when it has been away for half a minute", async () => {
  await using lab = new SliceLab();
  lab.changed(false);
  lab.changed(true);
  await lab.clock.advance(120_000);
  lab.changed(false);
  await lab.clock.advance(20_000);
  lab.changed(false);
  lab.changed(true);
  await lab.clock.advance(120_000);
  assert.deepEqual(lab.deleted, [], "it is always back in time");
  lab.changed(false);
  await lab.clock.advance(20_000);
  lab.changed(false);
  await lab.clock.advance(20_000);
  assert.deepEqual(lab.deleted.splice(0), ["290 spec.nodeName=node-1,spec.driver=gpu.example.com"]);
  lab.changed(true);
  await lab.clock.advance(60_000);
  lab.failures = 5;
  lab.changed(false);
  await lab.clock.advance(32_000);
  lab.changed(true);
  await lab.clock.advance(600_000);
  assert.equal(lab.deleted.length, 2, "it came back, and has published again");
  assert.equal(lab.clock.pendingTimers, 0);
});
