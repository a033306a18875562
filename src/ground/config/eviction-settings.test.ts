import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, loadFile } from "../../../test/support/load-config.ts";
import { type EvictionThreshold, evictionSettingsOf } from "./eviction-settings.ts";

const shown = ({ signal, amount, graceMs, minReclaim }: EvictionThreshold): string =>
  [
    signal,
    amountOf(amount),
    ...(graceMs === 0 ? [] : [`after ${graceMs / 1000}s`]),
    ...(minReclaim === undefined ? [] : [`and ${amountOf(minReclaim)} more`]),
  ].join(" ");
const amountOf = (amount: EvictionThreshold["amount"]): string =>
  "fraction" in amount ? `${Math.round(amount.fraction * 100)}%` : `${amount.quantity / 1_000_000_000n}`;

for (const { name, file, expected } of [
  {
    name: "what is absent is the default, and memory of all pods goes by that of the node",
    file: "",
    expected: [
      "memory.available 104857600",
      "nodefs.available 10%",
      "nodefs.inodesFree 5%",
      "imagefs.available 15%",
      "imagefs.inodesFree 5%",
      "allocatableMemory.available 104857600",
    ],
  },
  {
    name: "what is set replaces all defaults",
    file: 'evictionHard: {pid.available: "100"}\n',
    expected: ["pid.available 100"],
  },
  {
    name: "with mergeDefaultEvictionSettings, defaults fill the gaps",
    file: "evictionHard: {memory.available: 5%, imagefs.available: 0%}\nmergeDefaultEvictionSettings: true\n",
    expected: [
      "memory.available 5%",
      "nodefs.available 10%",
      "nodefs.inodesFree 5%",
      "imagefs.inodesFree 5%",
      "allocatableMemory.available 5%",
    ],
  },
  {
    name: "soft ones come after hard ones and have their grace; what more to free goes by the signal",
    file:
      "evictionHard: {memory.available: 100Mi}\nevictionSoft: {memory.available: 200Mi, nodefs.available: 100%}\n" +
      "evictionSoftGracePeriod: {memory.available: 1m30s}\nevictionMinimumReclaim: {memory.available: 50Mi}\n",
    expected: [
      "memory.available 104857600 and 52428800 more",
      "allocatableMemory.available 104857600 and 52428800 more",
      "memory.available 209715200 after 90s and 52428800 more",
    ],
  },
  {
    name: "pods that are not held to their share have no memory of their own to run out of",
    file: "evictionHard: {memory.available: 1Gi}\nenforceNodeAllocatable: [none]\n",
    expected: ["memory.available 1073741824"],
  },
]) {
  test(`eviction thresholds: ${name}`, async () => {
    const { thresholds } = evictionSettingsOf(configOf(await loadFile(file)));
    assert.deepEqual(thresholds.map(shown), expected);
  });
}
