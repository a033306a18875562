import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { claimingPod } from "../../test/support/claim-world.ts";
import { WholeAgent } from "../../test/support/whole-agent.ts";

const { resourceClaims = [], containers } = claimingPod("web", ["one"]).spec;

for (const isOn of [true, false]) {
  test(`a pod that names a claim, with DynamicResourceAllocation ${isOn ? "on" : "off"}`, async () => {
    await using whole = await WholeAgent.start({ config: `featureGates: {DynamicResourceAllocation: ${isOn}}\n` });
    whole.create("web", { resourceClaims, containers });
    whole.create("plain");
    await whole.until("others run", () => whole.running().includes("plain/main"));
    if (!isOn) await whole.until("it runs without", () => whole.running().includes("web/main"));
    await whole.clock.advance(5_000);
    assert.equal(whole.running().includes("web/main"), !isOn);
    assert.equal(existsSync(join(whole.directory, "root", "dra_manager_state")), isOn);
  });
}
