// A node lives for years and most pods for minutes: nothing of a pod may be held when it is gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { WholeAgent } from "../../test/support/whole-agent.ts";

const podCount = 8;
const weight = 512 * 1024;
/** Half of them, held once; what the agent compiles and caches meanwhile is far less. */
const mostHeld = (podCount / 2) * weight;

for (const policy of ["none", "static"]) {
  test(`heavy pods leave nothing of their weight (cpuManagerPolicy: ${policy})`, async () => {
    const reserved = 'reservedSystemCPUs: "0"\n';
    await using whole = await WholeAgent.start({ config: `cpuManagerPolicy: ${policy}\n${reserved}` });
    await comeAndGo(whole, "first");
    const before = heldBytes();
    for (let number = 0; number < podCount; number++) await comeAndGo(whole, `pod-${number}`);
    await whole.advance(60_000);
    whole.api.compact();
    const held = heldBytes() - before;
    assert.ok(held < mostHeld, `${podCount} pods left ${(held / weight).toFixed(1)} times their weight`);
  });
}

async function comeAndGo(whole: WholeAgent, name: string): Promise<void> {
  const env = [{ name: "WEIGHT", value: name.padEnd(weight, "x") }];
  whole.create(name, { containers: [{ name: "main", image: "busybox:1", env }] });
  await whole.until(`${name} runs`, () => whole.pod(name)?.status?.phase === "Running");
  whole.delete(name);
  await whole.until(`${name} is gone`, () => whole.pod(name) === undefined && whole.runtime.sandboxes().length === 0);
}

function heldBytes(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let round = 0; round < 3; round++) collect();
  return process.memoryUsage().heapUsed;
}
