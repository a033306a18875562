import assert from "node:assert/strict";
import { test } from "node:test";
import { WholeAgent } from "../../test/support/whole-agent.ts";

test("a machine that swaps and can't keep volumes in memory from it says so, and that pods are limited", async () => {
  await using whole = await WholeAgent.start({ swaps: ["/dev/swap"] });
  const events = (): readonly string[] =>
    whole.api.calls
      .filter(({ verb, path }) => verb === "create" && path.includes("/events"))
      .map(({ body }) => body as { type: string; reason: string; message: string })
      .map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
  await whole.until("both are told", () =>
    ["PossibleMemoryBackedVolumesOnDisk", "NodeAllocatableEnforced"].every((reason) =>
      events().some((event) => event.includes(reason)),
    ),
  );
  assert.deepEqual(
    events().filter((event) => /Memory|Allocatable/.test(event) && !event.includes("NodeHas")),
    [
      "Warning PossibleMemoryBackedVolumesOnDisk: The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped to disk and should no longer be considered secure.",
      "Normal NodeAllocatableEnforced: Updated Node Allocatable limit across pods",
    ],
  );
});
